// Times in the browser's zone, with UTC in the title. Pages are complete without this.
(function () {
  "use strict";
  var format = new Intl.DateTimeFormat(undefined, {dateStyle: "medium", timeStyle: "medium"});
  function local(root) {
    root.querySelectorAll("time[datetime]").forEach(function (t) {
      var at = new Date(t.dateTime);
      if (!isNaN(at)) t.textContent = format.format(at);
    });
  }
  document.addEventListener("DOMContentLoaded", function () { local(document); });
  document.addEventListener("htmx:load", function (e) { local(e.detail.elt); });
  // The session has ended: the page shows nothing of it any more.
  document.addEventListener("htmx:sseMessage", function (e) {
    if (e.detail.type === "ended") location.reload();
    var list = document.getElementById("changes-now");
    while (list && list.children.length > 50) list.lastElementChild.remove();
  });
})();
