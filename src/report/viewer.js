/* Draws the conformers of this page in 3D: a canvas in place of each static picture. It loads nothing.
   Drag or use the arrow keys to rotate, double-click to reset. */
(function () {
  "use strict";
  var LONG = "#E69F00", SHORT = "#CC79A7", CLASH = "#D55E00", STEREO = "#0072B2", REFERENCE = "#8C959F";
  var views = [];

  /* The product of two rotations, as rows. */
  function times(a, b) {
    return a.map(function (row) {
      return [0, 1, 2].map(function (j) { return row[0] * b[0][j] + row[1] * b[1][j] + row[2] * b[2][j]; });
    });
  }

  /* A rotation about the vertical axis, then about the horizontal one. */
  function turn(x, y) {
    var cx = Math.cos(x), sx = Math.sin(x), cy = Math.cos(y), sy = Math.sin(y);
    return times([[1, 0, 0], [0, cy, -sy], [0, sy, cy]], [[cx, 0, sx], [0, 1, 0], [-sx, 0, cx]]);
  }

  var START = turn(-0.35, 0.3);

  function View(figure) {
    var data = JSON.parse(figure.dataset.molecule);
    var all = data.points.concat(data.reference || []);
    var sum = all.reduce(function (s, p) { return [s[0] + p[0], s[1] + p[1], s[2] + p[2]]; }, [0, 0, 0]);
    var count = Math.max(all.length, 1);
    this.middle = sum.map(function (s) { return s / count; });
    this.radius = Math.sqrt(all.reduce(function (most, p) {
      return Math.max(most, Math.pow(p[0] - sum[0] / count, 2) + Math.pow(p[1] - sum[1] / count, 2) +
        Math.pow(p[2] - sum[2] / count, 2));
    }, 1));
    this.data = data;
    this.rotation = START;
    this.canvas = document.createElement("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", figure.dataset.label + ". Arrow keys rotate.");
    figure.insertBefore(this.canvas, figure.firstChild);
    figure.classList.add("live");
    this.listen();
  }

  View.prototype.listen = function () {
    var view = this, canvas = this.canvas, last = null;
    canvas.addEventListener("pointerdown", function (event) {
      last = [event.clientX, event.clientY];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", function (event) {
      if (!last) { return; }
      var x = (event.clientX - last[0]) / 120, y = (event.clientY - last[1]) / 120;
      last = [event.clientX, event.clientY];
      view.rotate(x, y);
    });
    ["pointerup", "pointercancel"].forEach(function (name) {
      canvas.addEventListener(name, function () { last = null; });
    });
    canvas.addEventListener("dblclick", function () { view.rotation = START; view.draw(); });
    canvas.addEventListener("keydown", function (event) {
      var step = { ArrowLeft: [-0.15, 0], ArrowRight: [0.15, 0], ArrowUp: [0, -0.15], ArrowDown: [0, 0.15] }[event.key];
      if (step) { event.preventDefault(); view.rotate(step[0], step[1]); }
    });
  };

  View.prototype.rotate = function (x, y) {
    this.rotation = times(turn(x, y), this.rotation);
    this.draw();
  };

  /* A point as it is seen: to the right, down, and how near it is, from 0 to 1. */
  View.prototype.place = function (point) {
    var middle = this.middle, rotation = this.rotation;
    var p = rotation.map(function (row) {
      return row[0] * (point[0] - middle[0]) + row[1] * (point[1] - middle[1]) + row[2] * (point[2] - middle[2]);
    });
    return [this.width / 2 + p[0] * this.scale, this.height / 2 - p[1] * this.scale, 0.5 + p[2] / (2 * this.radius)];
  };

  View.prototype.draw = function () {
    var canvas = this.canvas, ratio = window.devicePixelRatio || 1, data = this.data;
    this.width = canvas.clientWidth;
    this.height = canvas.clientHeight;
    if (!this.width || !this.height) { return; }
    canvas.width = Math.round(this.width * ratio);
    canvas.height = Math.round(this.height * ratio);
    this.scale = (Math.min(this.width, this.height) / 2 - 14) / this.radius;
    var wide = (this.width / 2 - 14) / this.radius;
    this.scale = Math.min(wide, this.scale * 1.25);
    var pen = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
    pen.scale(ratio, ratio);
    this.ink = style.getPropertyValue("--ink").trim();
    this.paper = style.getPropertyValue("--paper").trim();
    var points = data.points.map(this.place, this);
    this.sticks(pen, points);
    this.letters(pen, points);
    this.marks(pen, points);
  };

  function stroke(pen, from, to, colour, width, dash) {
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.setLineDash(dash || []);
    pen.beginPath();
    pen.moveTo(from[0], from[1]);
    pen.lineTo(to[0], to[1]);
    pen.stroke();
  }

  View.prototype.sticks = function (pen, points) {
    var data = this.data, sticks = [];
    [[points, true], [(data.reference || []).map(this.place, this), false]].forEach(function (set) {
      data.bonds.forEach(function (bond, index) {
        var from = set[0][bond[0]], to = set[0][bond[1]];
        if (from && to) { sticks.push({ own: set[1], index: index, from: from, to: to, near: (from[2] + to[2]) / 2 }); }
      });
    });
    sticks.sort(function (a, b) { return a.near - b.near; });
    pen.lineCap = "round";
    sticks.forEach(function (stick) {
      var near = Math.max(0, Math.min(1, stick.near)), colour = stick.own ? this.ink : REFERENCE, dash = [], more = 0;
      if (stick.own && data.long.indexOf(stick.index) >= 0) { colour = LONG; dash = [9, 7]; more = 1.5; }
      if (stick.own && data.short.indexOf(stick.index) >= 0) { colour = SHORT; dash = [1, 6]; more = 1.5; }
      pen.globalAlpha = stick.own ? 0.45 + 0.55 * near : 0.4 + 0.4 * near;
      stroke(pen, stick.from, stick.to, colour, 2 + 3 * near + more, dash);
    }, this);
    pen.globalAlpha = 1;
  };

  View.prototype.letters = function (pen, points) {
    var elements = this.data.elements, order = points.map(function (_, atom) { return atom; });
    order.sort(function (a, b) { return points[a][2] - points[b][2]; });
    pen.font = "12px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    order.forEach(function (atom) {
      if (elements[atom] === "C") { return; }
      var at = points[atom], half = 3 + 3.5 * elements[atom].length;
      pen.globalAlpha = 0.75;
      pen.fillStyle = this.paper;
      pen.fillRect(at[0] - half, at[1] - 6.5, 2 * half, 13);
      pen.globalAlpha = 1;
      pen.fillStyle = this.ink;
      pen.fillText(elements[atom], at[0], at[1] + 0.5);
    }, this);
  };

  View.prototype.marks = function (pen, points) {
    this.data.clashes.forEach(function (pair) {
      var a = points[pair[0]], b = points[pair[1]];
      if (!a || !b) { return; }
      var x = (a[0] + b[0]) / 2, y = (a[1] + b[1]) / 2;
      stroke(pen, a, b, CLASH, 2, [1, 5]);
      stroke(pen, [x - 3.5, y - 3.5], [x + 3.5, y + 3.5], CLASH, 2);
      stroke(pen, [x - 3.5, y + 3.5], [x + 3.5, y - 3.5], CLASH, 2);
    });
    this.data.stereo.forEach(function (atoms) {
      var known = atoms.map(function (atom) { return points[atom]; }).filter(Boolean);
      if (!known.length) { return; }
      var x = known.reduce(function (s, p) { return s + p[0]; }, 0) / known.length;
      var y = known.reduce(function (s, p) { return s + p[1]; }, 0) / known.length;
      [[0, -9, 9, 0], [9, 0, 0, 9], [0, 9, -9, 0], [-9, 0, 0, -9]].forEach(function (side) {
        stroke(pen, [x + side[0], y + side[1]], [x + side[2], y + side[3]], STEREO, 2.5);
      });
    });
  };

  function all() { views.forEach(function (view) { view.draw(); }); }

  Array.prototype.forEach.call(document.querySelectorAll(".views"), function (group) {
    Array.prototype.forEach.call(group.querySelectorAll("[data-molecule]"), function (figure) {
      views.push(new View(figure));
    });
    group.classList.add("live");
  });
  all();
  window.addEventListener("resize", all);
  document.addEventListener("toggle", all, true);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
})();
