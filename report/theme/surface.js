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
    plot.style.height = "100%";
    holder.classList.add("has-surface");
    var layout = Object.assign({}, spec.layout, { autosize: true, paper_bgcolor: "#fff" });
    delete layout.width;
    delete layout.height;
    box.appendChild(plot);
    window.Plotly.newPlot(plot, spec.data, layout, { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["sendDataToCloud"] })
      .catch(function () { holder.classList.remove("has-surface"); box.removeChild(plot); });
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
