-- What Quarto does to these .qmd files, for plain pandoc: numbers and resolves @fig-, @tbl-, @sec-; content-visible and
-- content-hidden; citations. Runs after common.lua; Quarto itself must not load this filter.
--
-- A reference that does not resolve, or an identifier used twice, is an error that names it: a report with "??" in it
-- must never look like a finished one.

local stringify = pandoc.utils.stringify

local names = { fig = "Figure", tbl = "Table", sec = "Section" }
local is_html = FORMAT:match("html") ~= nil
local is_typst = FORMAT == "typst"

local targets = {} -- identifier -> { kind, number }
local problems = pandoc.List()

-- A report in pages is made page by page, with `paged` (metadata) the file for what this page has in order: headings and
-- floats. Then what other pages decide is a mark in the text: a chapter's number, what number a reference names, and what
-- it calls it. workflow/collstudy/publish/pages.py puts the numbers there.
local paged, listed = false, pandoc.List()
local function chapter_mark(count) return "\u{E000}" .. count .. "\u{E002}" end
local function number_mark(identifier) return "\u{E001}" .. identifier .. "\u{E002}" end
local function name_mark(identifier) return "\u{E003}" .. identifier .. "\u{E002}" end

local function kind_of(identifier)
  local kind = (identifier or ""):match("^(%a+)%-.")
  return names[kind] and kind or nil
end

local function html(text) return pandoc.RawBlock("html", text) end
local function typst(text) return pandoc.RawBlock("typst", text) end
local function nbsp(text) return (text:gsub(" ", "\u{a0}")) end

-- Visible or hidden by format ---------------------------------------------------------------------------------------

local function format_matches(wanted)
  return (wanted == "html" and is_html) or (wanted == FORMAT) or (wanted == "pdf" and is_typst)
end

local visibility = { traverse = "topdown" }

local function keep_or_drop(el)
  local visible, hidden = el.classes:includes("content-visible"), el.classes:includes("content-hidden")
  if not (visible or hidden) then return nil end
  local when, unless = el.attributes["when-format"], el.attributes["unless-format"]
  local matches = true
  if when then matches = format_matches(when) end
  if unless then matches = matches and not format_matches(unless) end
  if matches == visible then return el.content:walk(visibility) end
  return {}
end

visibility.Div, visibility.Span = keep_or_drop, keep_or_drop

-- Numbers -------------------------------------------------------------------------------------------------------------

local function define(identifier, kind, number, name)
  if targets[identifier] then problems:insert("identifier used twice: " .. identifier) end
  targets[identifier] = { kind = kind, number = number, name = name or names[kind] }
end

local section_counter, float_counter = {}, { fig = 0, tbl = 0 }

local function list_header(el, number)
  listed:insert({ id = el.identifier, kind = "sec", number = number, level = el.level, title = stringify(el.content) })
end

local function number_header(el)
  if el.classes:includes("unnumbered") then
    if kind_of(el.identifier) == "sec" then define(el.identifier, "sec", nil) end
    list_header(el, "")
    return nil
  end
  section_counter[el.level] = (section_counter[el.level] or 0) + 1
  for level = el.level + 1, 6 do section_counter[level] = nil end
  local parts = pandoc.List()
  for level = 1, el.level do parts:insert(tostring(section_counter[level] or 0)) end
  if paged then parts[1] = chapter_mark(parts[1]) end
  local number = table.concat(parts, ".")
  if kind_of(el.identifier) == "sec" then define(el.identifier, "sec", number, el.level == 1 and "Chapter" or "Section") end
  if el.level == 1 then float_counter = { fig = 0, tbl = 0 } end
  list_header(el, number)
  if paged and is_html then
    el.attributes.number = number
    return el
  end
end

local function number_float(el)
  local kind = kind_of(el.identifier)
  if kind ~= "fig" and kind ~= "tbl" then return nil end
  float_counter[kind] = float_counter[kind] + 1
  local chapter = section_counter[1] and section_counter[1] .. "." or ""
  define(el.identifier, kind, paged and number_mark(el.identifier) or chapter .. float_counter[kind])
  listed:insert({ id = el.identifier, kind = kind })
end

-- Floats --------------------------------------------------------------------------------------------------------------

local function last_paragraph(blocks)
  local last = blocks[#blocks]
  if last and (last.t == "Para" or last.t == "Plain") and #blocks > 1 then
    return last.content, pandoc.Blocks({ table.unpack(blocks, 1, #blocks - 1) })
  end
  return pandoc.Inlines({}), blocks
end

local function numbered_caption(identifier, inlines)
  local target = targets[identifier]
  local label = nbsp(target.name .. " " .. target.number)
  local out = pandoc.Inlines({ pandoc.Strong({ pandoc.Str(label .. (#inlines > 0 and ":" or "")) }) })
  if #inlines > 0 then out:insert(pandoc.Space()) end
  out:extend(inlines)
  return out
end

local function build_float(identifier, content, caption)
  local kind, out = targets[identifier].kind, pandoc.Blocks({})
  local inlines = numbered_caption(identifier, caption)
  if is_html then
    local figcaption = pandoc.Blocks({ html("<figcaption>"), pandoc.Plain(inlines), html("</figcaption>") })
    out:insert(html(string.format('<figure class="quarto-float quarto-float-%s">', kind)))
    if kind == "tbl" then out:extend(figcaption) end
    out:extend(content)
    if kind == "fig" then out:extend(figcaption) end
    out:insert(html("</figure>"))
    -- Not an identifier in raw HTML: pandoc must know it to lead references from other pages here.
    out = pandoc.Blocks({ pandoc.Div(out, { id = identifier }) })
  elseif is_typst then
    -- The number is in the caption's text: typst's own counters then cannot disagree with the references.
    out:insert(typst(string.format("#figure(kind: %s, supplement: none, numbering: none, caption: [",
      kind == "tbl" and "table" or "image")))
    out:insert(pandoc.Plain(inlines))
    out:insert(typst("], ["))
    out:extend(content)
    out:insert(typst(string.format("]) <%s>", identifier)))
  else
    out:extend(content)
    out:insert(pandoc.Para(inlines))
  end
  return out
end

local function float_div(el)
  if not targets[el.identifier] or targets[el.identifier].kind == "sec" then return nil end
  local caption, content = last_paragraph(el.content)
  return build_float(el.identifier, content, caption)
end

local function float_figure(el)
  if not targets[el.identifier] then return nil end
  return build_float(el.identifier, el.content, pandoc.utils.blocks_to_inlines(el.caption.long))
end

local function float_table(el)
  if not targets[el.identifier] then return nil end
  local identifier, caption = el.identifier, pandoc.utils.blocks_to_inlines(el.caption.long)
  el.identifier, el.caption = "", { long = {} }
  return build_float(identifier, pandoc.Blocks({ el }), caption)
end

-- References ----------------------------------------------------------------------------------------------------------

local function link_to(citation)
  local target = targets[citation.id]
  if paged then target = { number = number_mark(citation.id) } end
  if not target then
    problems:insert("unresolved reference @" .. citation.id)
    return pandoc.Str("?@" .. citation.id)
  end
  local text = target.number or "?"
  if target.number == nil then
    problems:insert("reference to an unnumbered section @" .. citation.id)
  elseif citation.mode ~= "SuppressAuthor" then
    text = paged and name_mark(citation.id) or nbsp(target.name .. " " .. text)
  end
  if is_typst then
    return pandoc.RawInline("typst", string.format("#link(<%s>)[%s]", citation.id, text))
  end
  return pandoc.Link(text, "#" .. citation.id, "", { class = "crossref" })
end

local works_cited = false

local function resolve(el)
  local out = pandoc.Inlines({})
  for i, citation in ipairs(el.citations) do
    if not kind_of(citation.id) then
      works_cited = true
      return nil
    end
    if i > 1 then out:extend({ pandoc.Str(","), pandoc.Space() }) end
    out:extend(citation.prefix)
    if #citation.prefix > 0 then out:insert(pandoc.Space()) end
    out:insert(link_to(citation))
    out:extend(citation.suffix)
  end
  return out
end

-- Tables --------------------------------------------------------------------------------------------------------------

-- pandoc's writer puts every table into a centred figure of its own; ours already is in one, and aligned with its caption.
local function bare_typst_table(el)
  local text = pandoc.write(pandoc.Pandoc({ el }), "typst")
  local table_only = text:match("^%s*#figure%(%s*align%(center%)%[(#table%(.*%))%]%s*,%s*kind: table%s*%)%s*$")
  if table_only then return typst(table_only) end
end

-- pandoc's writer drops the description of an image.
local function described_typst_image(el)
  local text = pandoc.write(pandoc.Pandoc({ pandoc.Plain({ el }) }), "typst")
  local image = text:match("^(#box%(image%(.*)%)%)%s*$")
  if image and el.attributes.alt then
    return pandoc.RawInline("typst", string.format('%s, alt: "%s"))', image, el.attributes.alt))
  end
end

-- Headings of the front page are no sections of their own, but the search leads to them.
local function front_heading(el)
  local opening = string.format('<h%d class="unnumbered" id="%s">', el.level, el.identifier)
  return pandoc.Blocks({ html(opening), pandoc.Plain(el.content), html(string.format("</h%d>", el.level)) })
end

local function front_page(el)
  if paged and is_html and el.classes:includes("front-page") then return el:walk({ Header = front_heading }) end
end

local function has_references(doc)
  local found = false
  doc:walk({ Div = function(el) found = found or el.identifier == "refs" end })
  return found
end

-- For the template: the title of the page of a chapter.
local function describe_page(meta)
  for _, entry in ipairs(listed) do
    if entry.level == 1 and entry.number ~= "" then
      meta.chapter, meta.pagetitle = true, entry.title
      break
    end
  end
  local file = assert(io.open(stringify(meta.paged), "w"))
  file:write(pandoc.json.encode(listed))
  file:close()
end

function Pandoc(doc)
  paged = doc.meta.paged ~= nil
  doc = doc:walk(visibility)
  doc = doc:walk({ traverse = "topdown", Header = number_header, Div = number_float, Figure = number_float,
    Table = number_float })
  doc = doc:walk({ Div = float_div, Figure = float_figure, Table = float_table })
  doc = doc:walk({ Cite = resolve })
  doc = doc:walk({ Div = front_page })
  if paged then describe_page(doc.meta) end
  -- Here, not by --citeproc: typst tables become text in the next step. What is cited stays as text, because the writer
  -- would make a citation of typst's own of it.
  -- Only one page lists the works, those that all pages cite.
  local listing = not paged or has_references(doc)
  if doc.meta.bibliography and (listing or works_cited) then
    doc = pandoc.utils.citeproc(doc):walk({
      Cite = function(el) return el.content end,
      Div = function(el) if el.identifier == "refs" and not listing then return {} end end,
    })
  end
  if is_typst then doc = doc:walk({ Table = bare_typst_table, Image = described_typst_image }) end
  if #problems > 0 then
    error("crossref: " .. table.concat(problems, "\ncrossref: "), 0)
  end
  return doc
end
