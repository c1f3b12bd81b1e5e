// Behaviour of the pages: contents that follow the scroll, anchors, search, large figures, light and dark.
// Everything can be read without it.
(function () {
  "use strict";
  document.documentElement.classList.add("js");
  var all = function (selector, root) { return Array.prototype.slice.call((root || document).querySelectorAll(selector)); };
  var toc = document.getElementById("toc");
  var links = all("li a[href^='#']", toc);
  var headings = links.map(function (link) {
    return document.getElementById(decodeURIComponent(link.getAttribute("href").slice(1)));
  });
  var current = null;

  function follow() {
    var found = -1;
    for (var i = 0; i < headings.length; i++) {
      if (headings[i] && headings[i].getBoundingClientRect().top <= 120) found = i;
    }
    if (window.innerHeight + window.scrollY >= document.body.scrollHeight - 4) found = headings.length - 1;
    var link = links[found] || null;
    if (link === current) return;
    current = link;
    all(".active", toc).forEach(function (a) { a.classList.remove("active"); a.removeAttribute("aria-current"); });
    all(".open", toc).forEach(function (li) { li.classList.remove("open"); });
    if (!link) return;
    link.classList.add("active");
    link.setAttribute("aria-current", "true");
    for (var li = link.closest("li"); li && toc.contains(li); li = li.parentElement.closest("li")) li.classList.add("open");
    var box = toc.getBoundingClientRect(), place = link.getBoundingClientRect();
    if (place.top < box.top + 40 || place.bottom > box.bottom - 40) toc.scrollTop += place.top - box.top - box.height / 3;
  }
  var waiting = false;
  window.addEventListener("scroll", function () {
    if (waiting) return;
    waiting = true;
    window.requestAnimationFrame(function () { waiting = false; follow(); });
  }, { passive: true });
  window.addEventListener("resize", follow);

  var toggle = document.querySelector(".toc-toggle");
  function show(open) {
    toc.classList.toggle("shown", open);
    toggle.setAttribute("aria-expanded", String(open));
  }
  toggle.addEventListener("click", function () { show(!toc.classList.contains("shown")); });
  toc.addEventListener("click", function (event) { if (event.target.closest("a")) show(false); });
  document.addEventListener("keydown", function (event) { if (event.key === "Escape") show(false); });

  all("main :is(h1,h2,h3,h4)[id]").forEach(function (heading) {
    var anchor = document.createElement("a");
    anchor.className = "anchor";
    anchor.href = "#" + heading.id;
    anchor.textContent = "#";
    anchor.setAttribute("aria-label", "Link to this section");
    heading.appendChild(anchor);
  });

  follow();

  // Light and dark: the system's choice until the reader makes one.
  document.getElementById("theme-switch").addEventListener("click", function () {
    var root = document.documentElement;
    var dark = root.dataset.theme ? root.dataset.theme === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("report-theme", root.dataset.theme); } catch (error) { /* no storage */ }
  });

  // A figure opens large on a click or, like a button, with the keyboard.
  var large = document.getElementById("large");
  if (large.showModal) {
    all(".quarto-float-fig img").forEach(function (image) {
      image.classList.add("opens");
      image.tabIndex = 0;
      image.setAttribute("role", "button");
      image.addEventListener("click", function () {
        var shown = large.querySelector("img");
        shown.src = image.src;
        shown.alt = image.alt;
        large.showModal();
      });
      image.addEventListener("keydown", function (event) {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        image.click();
      });
    });
    large.addEventListener("click", function () { large.close(); });
  }

  // Search: the index is a script of its own, loaded when somebody searches.
  var search = document.getElementById("search"), found = document.getElementById("found");
  if (!search) return;
  // The pages have typographic quotes, keyboards do not.
  function plain(text) { return text.toLowerCase().replace(/[\u2018\u2019]/g, "'").replace(/[\u201c\u201d]/g, '"'); }
  // Words that follow each other, such as "Figure 4.5", go before words anywhere in a section.
  function results(words) {
    var scored = [], phrase = words.join(" ");
    window.reportSearch.forEach(function (entry) {
      var title = plain(entry.title), text = plain(entry.text), score = 0;
      for (var i = 0; i < words.length; i++) {
        if (title.indexOf(words[i]) >= 0) score += 5;
        else if (text.indexOf(words[i]) >= 0) score += 1;
        else return;
      }
      if (words.length > 1 && text.indexOf(phrase) >= 0) score += 10;
      scored.push([score, entry]);
    });
    scored.sort(function (a, b) { return b[0] - a[0]; });
    return scored.slice(0, 20).map(function (pair) { return pair[1]; });
  }
  function excerpt(text, words) {
    var at = plain(text).indexOf(words.join(" "));
    at = Math.max(0, (at < 0 ? plain(text).indexOf(words[0]) : at) - 40);
    return (at ? "\u2026" : "") + text.slice(at, at + 130) + "\u2026";
  }
  function list() {
    var words = plain(search.value).split(/\s+/).filter(function (word) { return word.length > 1; });
    found.hidden = words.length === 0;
    found.textContent = "";
    if (!words.length) return;
    var hits = results(words);
    if (!hits.length) found.textContent = "Nothing found.";
    hits.forEach(function (entry) {
      var link = document.createElement("a"), title = document.createElement("strong"), text = document.createElement("span");
      link.href = entry.url;
      title.textContent = entry.title;
      text.textContent = excerpt(entry.text, words);
      link.appendChild(title);
      link.appendChild(text);
      found.appendChild(link);
    });
  }
  search.addEventListener("input", function () {
    if (window.reportSearch) return list();
    if (document.getElementById("search-index")) return;
    var script = document.createElement("script");
    script.id = "search-index";
    script.src = "search.js";
    script.onload = list;
    document.head.appendChild(script);
  });
})();
