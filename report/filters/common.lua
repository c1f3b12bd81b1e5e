-- For Quarto (before its own filters) and for the fallback (before crossref.lua).

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

return { { Table = natural_widths, Str = FORMAT == "typst" and hyphens or nil } }
