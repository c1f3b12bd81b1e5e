"""Parts of the report by themselves: what its R functions write for a study."""

from __future__ import annotations

from conftest import ROOT, finish, must


def test_the_section_that_judged_decisions_refer_to_is_there():
    """Sampling may be replayed without decisions: its sentences are claims, to which the appendix refers."""
    said = 'data.frame(section = "tuning", order = 1, text = "Half of the grid suffices.", claim = TRUE)'
    code = f'source("R/report.R"); show_tuned(list(id = "x", folder = tempdir(), sentences = {said}, tuning = data.frame()))'
    shown = must(finish(["Rscript", "-e", code], cwd=ROOT / "report")).stdout
    assert "## Tuning {#sec-x_tuning}" in shown and "Half of the grid suffices" in shown


def test_no_section_on_decisions_where_none_was_judged(tmp_path):
    """With fewer than four process counts no rules are decided on half of them: the table has no rows."""
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "tuning-regret.csv").write_text("collective,policy,split\n", encoding="utf-8")
    said = "data.frame(section = character(), text = character())"
    code = f'source("R/report.R"); show_tuned(list(id = "x", folder = "{tmp_path}", sentences = {said}, tuning = data.frame()))'
    assert must(finish(["Rscript", "-e", code], cwd=ROOT / "report")).stdout == ""


def test_what_rules_save_is_in_a_table_with_its_interval(tmp_path):
    """The front page quotes these numbers: the default takes 60 % longer (28 to 180 %)."""
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "tuning-regret.csv").write_text(
        "collective,policy,split,mapping,cells,gain_pct,gain_low_pct,gain_high_pct\n"
        "bcast,tuned,both halves,all,20,60,28,180\n"
        "bcast,tuned,decided at 2,all,10,50,40,60\n"
        "bcast,best-single,both halves,all,20,9,1,19\n",
        encoding="utf-8",
    )
    study = f'list(id = "x", name = "x", folder = "{tmp_path}", simulated = FALSE)'
    code = f'source("R/report.R"); show_saved({study})'
    shown = must(finish(["Rscript", "-e", code], cwd=ROOT / "report")).stdout
    rows = [line for line in shown.splitlines() if line.startswith("| ")]
    assert rows[1:] == ["| Broadcast | all | 20 | 37.5 | 21.9 | 64.3 |"], shown


def test_no_heading_on_trust_without_a_sentence():
    """A study of two ranks compares nothing that could be doubted."""
    said = 'data.frame(section = c({}), order = 1, text = "Noise", claim = TRUE)'
    for section, shown in (('"trust"', "## How far to trust it {#sec-trust .unnumbered}\n\n- Noise"), ('"answer"', "")):
        code = f'source("R/report.R"); show_trust(list(front = list(sentences = {said.format(section)})))'
        assert must(finish(["Rscript", "-e", code], cwd=ROOT / "report")).stdout.strip() == shown


def test_small_values_are_not_rounded_to_zero():
    """The times of a small problem are below a millisecond; some transfers are short beside others."""
    columns = {"c(4.3e-5, 2.1e-4)": "5x5_s", "c(0.03, 0.5)": "5x5_s", "c(0, 0.28, 0.7, 12345.6)": "transfer_us"}
    shown = ", ".join(f'format_column({values}, "{name}")' for values, name in columns.items())
    shown = must(finish(["Rscript", "-e", f'source("R/report.R"); cat({shown})'], cwd=ROOT / "report")).stdout
    assert shown.split() == ["0.00004", "0.00021", "0.030", "0.500", "0", "0.28", "0.7", "12,346"]


def test_latencies_of_all_sizes_keep_the_digits_that_the_sentences_have():
    """Beside the latency of 1 MiB, 3.92 and 4.08 microseconds would both be 4."""
    code = 'source("R/report.R"); cat(format_column(c(3.92, 4.08, 59.37, 100, -6.124, 138.6, 84934.2), "winner_us"))'
    shown = must(finish(["Rscript", "-e", code], cwd=ROOT / "report")).stdout
    assert shown.split() == ["3.92", "4.08", "59.4", "100", "\u22126.12", "139", "84,934"]
    code = 'source("R/report.R"); cat(format_column(c(37.5, 100), "optimal_pct"))'
    assert must(finish(["Rscript", "-e", code], cwd=ROOT / "report")).stdout == "37.5 100.0"


def test_simulated_cells_are_not_passed_off_as_measured():
    study = 'list(cells = data.frame(study = "thin", status = "measured"), name = "thin")'
    code = f"""source("R/report.R"); cell_columns <- c("study", "status"); show_cells(list({study}))"""
    shown = must(finish(["Rscript", "-e", code], cwd=ROOT / "report")).stdout
    assert "simulated and imported ones count as measured" in shown


def test_pairs_of_runs_are_not_pairs_of_cores():
    code = 'source("R/report.R"); cat(header_of(c("pairs", "confidence_pct")), sep = ";")'
    assert must(finish(["Rscript", "-e", code], cwd=ROOT / "report")).stdout == "Pairs;Confidence (%)"


def test_a_part_does_not_say_again_what_its_chapter_begins_with(tmp_path):
    """On paper the part names its figure, which may be on another page."""
    (tmp_path / "gained.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>', encoding="utf-8"
    )
    # An answer may begin with the title of the study.
    text = 'c("x: half is gained.", "All is well.", "Half is gained.", "All is well.", "Much is left.")'
    said = f'data.frame(section = rep(c("answer", "gain"), 2:3), order = 1, text = {text}, claim = FALSE)'
    figures = 'data.frame(section = "gain", id = "gained", file = "gained.svg", caption = "Gained.", title = "Gained")'
    study = f'list(id = "x", name = "x", folder = "{tmp_path}", sentences = {said}, figures = {figures}, tables = {figures}[0, ])'
    code = f"""source("R/report.R"); study <- {study}
    show_figure <- function(...) NULL
    show_part(study, part(study, "Gain", "gain", "gain"))
    study$sentences <- study$sentences[0, ]
    show_part(study, part(study, "Gain", "gain", "gain"))"""
    shown = must(finish(["Rscript", "-e", code], cwd=ROOT / "report")).stdout
    assert "Half is gained" not in shown and "All is well" not in shown and shown.count("Much is left") == 1
    assert "The other results of this section are stated at the beginning of this chapter; @fig-x_gained shows" in shown
    assert "See @fig-x_gained." in shown


def test_the_table_of_the_answer_has_the_caption_that_the_analysis_wrote(tmp_path):
    columns = "collective,mapping,cells,default_best_pct,slower,default_geometric_mean_pct,default_p90_pct,best_single"
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "answer.csv").write_text(
        f"{columns},best_single_geometric_mean_pct\nbcast,core,9,50,,2,3,chain,1\n"
    )
    (tmp_path / "tables" / "index.csv").write_text(
        "id,section,file,caption\nanswer,answer,tables/answer.csv,How often\n"
    )
    code = f"""source("R/report.R")
    study <- read_shown(list(results = "{tmp_path.parent}", build = "."), "{tmp_path.name}")
    show_study_answer(study)"""
    shown = must(finish(["Rscript", "-e", code], cwd=ROOT / "report")).stdout
    assert "\nHow often\n" in shown
