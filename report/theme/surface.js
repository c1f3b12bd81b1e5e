// Turns the static pictures of surfaces into interactive ones, each when it comes into view, where the browser has WebGL.
(function () {
  "use strict";
  function webgl() {
    try {
      var canvas = document.createElement("canvas");
      return !!(canvas.getContext("webgl") || canvas.getContext("experimental-webgl"));
    } catch (error) { return false; }
  }
  if (!window.Plotly || !webgl()) return;
  function draw(box) {
    var spec = JSON.parse(box.querySelector("script").textContent);
    var holder = box.parentElement;
    var plot = document.createElement("div");
    plot.className = "surface-plot";
    holder.classList.add("has-surface");
    var layout = Object.assign({}, spec.layout, { autosize: true, paper_bgcolor: "#fff" });
    delete layout.width;
    delete layout.height;
    layout.showlegend = false;
    spec.data.forEach(label);
    // The still picture, which has the description, is hidden.
    plot.setAttribute("role", "img");
    plot.setAttribute("aria-label", holder.querySelector("img").alt);
    box.appendChild(choices(plot, spec.data));
    box.appendChild(plot);
    window.Plotly.newPlot(plot, spec.data, layout, { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["sendDataToCloud"] })
      .catch(function () { holder.classList.remove("has-surface"); });
  }
  // What is shown at a point; Debian's plotly is older than templates for this.
  function label(trace) {
    trace.hoverinfo = "text";
    trace.text = trace.z.map(function (row, i) {
      return row.map(function (us, j) {
        if (us === null) return "";
        return trace.name + "<br>" + trace.x[j] + " B, " + trace.y[i] + " processes: " + Number(us.toPrecision(3)) + " \u00b5s";
      });
    });
  }
  // A legend of our own: surfaces have none in every version of plotly.
  function choices(plot, data) {
    var bar = document.createElement("div");
    bar.className = "surface-choices";
    data.forEach(function (trace, i) {
      if (!trace.name) return;
      var label = document.createElement("label"), input = document.createElement("input"), swatch = document.createElement("span");
      input.type = "checkbox";
      input.checked = trace.visible !== false;
      input.addEventListener("change", function () { window.Plotly.restyle(plot, { visible: input.checked }, [i]); });
      var scale = trace.colorscale;
      swatch.style.background = scale && scale.length ? scale[scale.length - 1][1] : "#888";
      label.appendChild(input);
      label.appendChild(swatch);
      label.appendChild(document.createTextNode(trace.name));
      bar.appendChild(label);
    });
    var hint = document.createElement("em");
    hint.textContent = "Drag to turn, scroll to zoom, untick to hide.";
    bar.appendChild(hint);
    return bar;
  }
  var boxes = Array.prototype.slice.call(document.querySelectorAll(".surface"));
  if (!window.IntersectionObserver) return boxes.forEach(draw);
  var watcher = new IntersectionObserver(function (entries) {
    entries.forEach(function (entry) {
      if (!entry.isIntersecting) return;
      watcher.unobserve(entry.target);
      draw(entry.target.querySelector(".surface"));
    });
  }, { rootMargin: "300px" });
  // A box that is not shown never intersects: watch the figure around it.
  boxes.forEach(function (box) { watcher.observe(box.parentElement); });
})();
