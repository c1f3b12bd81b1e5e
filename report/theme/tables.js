// Tables: sort by a click on a header, filter rows, download as CSV.
(function () {
  "use strict";
  var FILTER_FROM = 8;
  function cellText(row, i) { return row.cells[i] ? row.cells[i].textContent.trim() : ""; }
  // "1,234.5", "−3", "64 KiB", "> 100,000": the number that a cell shows; NaN where it shows none.
  function numberOf(text) {
    var parts = text.replace(/[\u00a0\u202f]/g, " ").replace(/\u2212/g, "-").replace(/,/g, "").match(/^>?\s*(-?[\d.]+)\s*(B|KiB|MiB|GiB)?$/);
    return parts ? parseFloat(parts[1]) * Math.pow(1024, Math.max(0, ["B", "KiB", "MiB", "GiB"].indexOf(parts[2]))) : NaN;
  }
  function sortBy(table, column, ascending) {
    var body = table.tBodies[0];
    var rows = Array.prototype.slice.call(body.rows);
    var keys = new Map(rows.map(function (row) { var text = cellText(row, column); return [row, [numberOf(text), text]]; }));
    var numbers = rows.every(function (row) { var key = keys.get(row); return !isNaN(key[0]) || key[1] === "" || key[1] === "\u2013"; });
    rows.sort(function (a, b) {
      var x = keys.get(a), y = keys.get(b), order;
      if (numbers) {
        if (isNaN(x[0]) || isNaN(y[0])) return isNaN(x[0]) - isNaN(y[0]);
        order = x[0] - y[0];
      } else order = x[1].localeCompare(y[1]);
      return ascending ? order : -order;
    });
    rows.forEach(function (row) { body.appendChild(row); });
  }
  // Numbers without typographic signs, as programs read them.
  function bare(text) {
    if (text === "\u2013") return "";
    return /^\u2212?\d[\d,]*(\.\d+)?$/.test(text) ? text.replace("\u2212", "-").replace(/,/g, "") : text;
  }
  function csv(table) {
    return Array.prototype.map.call(table.rows, function (row) {
      return Array.prototype.map.call(row.cells, function (cell) {
        var text = bare(cell.textContent.trim().replace(/\s+/g, " "));
        return /[",]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
      }).join(",");
    }).join("\n") + "\n";
  }
  function download(name, text) {
    var link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    link.download = name + ".csv";
    link.click();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
  }
  function prepare(box) {
    var table = box.querySelector("table");
    if (!table || !table.tHead || !table.tBodies[0]) return;
    var headers = Array.prototype.slice.call(table.tHead.rows[0].cells);
    headers.forEach(function (header, column) {
      var button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      while (header.firstChild) button.appendChild(header.firstChild);
      header.appendChild(button);
      button.addEventListener("click", function () {
        var ascending = header.getAttribute("aria-sort") !== "ascending";
        headers.forEach(function (other) { other.removeAttribute("aria-sort"); });
        header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        sortBy(table, column, ascending);
      });
    });
    var tools = document.createElement("div");
    tools.className = "table-tools";
    if (table.tBodies[0].rows.length >= FILTER_FROM) {
      var input = document.createElement("input");
      input.type = "search";
      input.placeholder = "Filter rows";
      input.setAttribute("aria-label", "Filter rows");
      input.addEventListener("input", function () {
        var words = input.value.toLowerCase().split(/\s+/);
        Array.prototype.forEach.call(table.tBodies[0].rows, function (row) {
          var text = row.textContent.toLowerCase();
          row.hidden = !words.every(function (word) { return text.indexOf(word) >= 0; });
        });
      });
      tools.appendChild(input);
    }
    var save = document.createElement("button");
    save.type = "button";
    save.textContent = "CSV";
    save.title = "Download this table as CSV";
    var figure = box.closest("[id^='tbl-']");
    save.addEventListener("click", function () { download(figure ? figure.id.replace(/^tbl-/, "") : "table", csv(table)); });
    tools.appendChild(save);
    box.parentElement.insertBefore(tools, box);
  }
  Array.prototype.forEach.call(document.querySelectorAll(".table-scroll"), prepare);
})();
