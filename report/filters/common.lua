-- For Quarto (before its own filters, which would make callouts for its own theme) and for the fallback (before crossref.lua).

local stringify = pandoc.utils.stringify
local is_html, is_typst = FORMAT:match("html") ~= nil, FORMAT == "typst"

local function html(text) return pandoc.RawBlock("html", text) end
local function typst(text) return pandoc.RawBlock("typst", text) end

-- The browser and typst choose the widths of columns: those that pandoc derives from long lines of a pipe table squeeze short
-- columns until their words overlap.
local function natural_widths(el)
  for i, spec in ipairs(el.colspecs) do el.colspecs[i] = { spec[1], nil } end
  return el
end

-- In typst "--" is a dash and "-?" a soft hyphen; pandoc before 3.9 (Quarto has 3.8) writes them as they are, and the option
-- --map-by of a command would be printed with a dash.
local function hyphens(el)
  local out, rest = pandoc.Inlines({}), el.text
  while rest:match("%-[-?]") do
    local before, after = rest:match("^(.-)%-([-?].*)$")
    out:extend({ pandoc.Str(before), pandoc.RawInline("typst", "\\-") })
    rest = after
  end
  out:insert(pandoc.Str(rest))
  return out
end

local function escape_html(text)
  return (text:gsub("&", "&amp;"):gsub("<", "&lt;"):gsub(">", "&gt;"):gsub('"', "&quot;"))
end

local callout_titles = { note = "Note", tip = "Tip", warning = "Warning", caution = "Caution", important = "Important" }

local function callout(el)
  local kind
  for _, class in ipairs(el.classes) do kind = kind or class:match("^callout%-(%a+)$") end
  if not kind or not callout_titles[kind] then return nil end
  local title, body = pandoc.Inlines({ pandoc.Str(callout_titles[kind]) }), el.content
  if el.attributes.title then
    title = pandoc.utils.blocks_to_inlines(pandoc.read(el.attributes.title, "markdown").blocks)
  elseif body[1] and body[1].t == "Header" then
    title = body[1].content
    body = pandoc.Blocks({ table.unpack(body, 2) })
  end
  local out = pandoc.Blocks({})
  if is_html then
    local folded = el.attributes.collapse == "true"
    local tag, head = folded and "details" or "div", folded and "summary" or "div"
    out:insert(html(string.format('<%s class="callout callout-%s"><%s class="callout-title">', tag, kind, head)))
    out:insert(pandoc.Plain(title))
    out:insert(html(string.format('</%s><div class="callout-body">', head)))
    out:extend(body)
    out:insert(html(string.format("</div></%s>", tag)))
  elseif is_typst then
    out:insert(typst(string.format("#callout(icon_color: callout-colours.%s, title: [", kind)))
    out:insert(pandoc.Plain(title))
    out:insert(typst("], body: ["))
    out:extend(body)
    out:insert(typst("])"))
  else
    out:insert(pandoc.Para({ pandoc.Strong(title) }))
    out:extend(body)
  end
  return out
end

return { { Table = natural_widths, Str = is_typst and hyphens or nil, Div = callout } }
