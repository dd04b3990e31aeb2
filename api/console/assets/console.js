// Times in the browser's zone, with UTC in the title; "/" to look up; copying. Pages are complete without this.
(function () {
  "use strict";
  var format = new Intl.DateTimeFormat(undefined, {dateStyle: "medium", timeStyle: "medium"});
  function dress(root) {
    root.querySelectorAll("time[datetime]").forEach(function (t) {
      var at = new Date(t.dateTime);
      if (!isNaN(at)) t.textContent = format.format(at);
    });
    root.querySelectorAll("[data-origin]").forEach(function (e) { // behind a proxy the server does not know its own
      e.textContent = e.textContent.replace(e.dataset.origin, location.origin);
    });
    root.querySelectorAll(".finder").forEach(function (f) { f.hidden = false; });
    root.querySelectorAll("button[data-copy]").forEach(function (b) { b.hidden = !navigator.clipboard; });
  }
  // Pickers of times are in the browser's zone, too; what is sent is UTC.
  function shifted(value, minutes) {
    var at = new Date(value + "Z");
    return isNaN(at) ? value : new Date(at - minutes(at) * 60000).toISOString().slice(0, 16);
  }
  function pickers() {
    document.querySelectorAll("input[type=datetime-local]").forEach(function (i) {
      if (i.value) i.value = shifted(i.value, function (at) { return at.getTimezoneOffset(); });
      i.form.addEventListener("formdata", function (e) {
        if (i.value) e.formData.set(i.name, shifted(i.value, function () { return -new Date(i.value).getTimezoneOffset(); }));
      });
    });
    document.querySelectorAll(".zone").forEach(function (z) { z.textContent = format.resolvedOptions().timeZone; });
  }
  // The time until a check; when that has come, the page shows its result.
  function countdown(e) {
    var until = new Date(e.dataset.until);
    function left() { return Math.ceil((until - Date.now()) / 1000); }
    function show() {
      var s = left();
      if (s < -3) return location.reload();
      e.textContent = s <= 0 ? ", now" : s < 120 ? ", in " + s + " s" : ", in " + Math.round(s / 60) + " min";
      setTimeout(show, 1000);
    }
    if (isNaN(until) || left() <= 0) return;
    e.hidden = false;
    show();
  }
  document.addEventListener("DOMContentLoaded", function () {
    dress(document);
    pickers();
    document.querySelectorAll("[data-until]").forEach(countdown);
  });
  document.addEventListener("htmx:load", function (e) { dress(e.detail.elt); });

  // "/" goes to the look-up box of the page or of the header, Escape leaves it, and closes the menu.
  function menu() { return document.querySelector("details.menu[open]"); }
  document.addEventListener("keydown", function (e) {
    var typing = e.target.matches("input, textarea, select, [contenteditable]");
    if (e.key === "/" && !typing && !e.ctrlKey && !e.metaKey && !e.altKey) {
      var box = document.getElementById("domain") || document.getElementById("find");
      if (box) { e.preventDefault(); box.focus(); box.select(); }
    } else if (e.key === "Escape" && (e.target.id === "domain" || e.target.id === "find")) {
      e.target.blur();
    } else if (e.key === "Escape" && menu()) {
      menu().firstElementChild.focus();
      menu().open = false;
    }
  });
  document.addEventListener("click", function (e) {
    if (menu() && !menu().contains(e.target)) menu().open = false;
    var add = e.target.closest("button[data-add]"); // a project that was found goes into the list
    if (add) {
      var list = document.getElementById(add.dataset.add), have = list.value.split(/[\s,]+/).filter(Boolean);
      if (!have.includes(add.value)) list.value = have.concat(add.value).join("\n");
      add.disabled = true;
    }
    var b = e.target.closest("button[data-copy]");
    if (!b) return;
    var said = b.textContent;
    navigator.clipboard.writeText(document.getElementById(b.dataset.copy).textContent.trim()).then(function () {
      b.textContent = "Copied";
      setTimeout(function () { b.textContent = said; }, 2000);
    });
  });

  // A suggestion does not replace a field in which a person is typing, or has typed after the suggestion was asked for.
  document.addEventListener("htmx:beforeSwap", function (e) {
    var into = e.detail.target, asked = e.detail.requestConfig.parameters;
    function typed(i) { return i.type === "text" && i.value !== asked[i.name]; }
    if (into.matches(".field") && (into.contains(document.activeElement) || Array.from(into.querySelectorAll("input")).some(typed)))
      e.detail.shouldSwap = false;
  });

  // The session has ended: the page shows nothing of it any more.
  document.addEventListener("htmx:sseMessage", function (e) {
    if (e.detail.type === "ended") location.reload();
    var list = document.getElementById("changes-now");
    while (list && list.children.length > 50) list.lastElementChild.remove();
  });
})();
