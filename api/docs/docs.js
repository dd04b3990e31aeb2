// Adds a button to each example, which copies it: of what a terminal shows only the commands, without "$ ".
for (const pre of document.querySelectorAll("main pre")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const lines = pre.textContent.replace(/\n$/, "").split("\n");
    let text = lines.join("\n");
    if (lines.some((line) => line.startsWith("$ "))) {
      const kept = [];
      let goes = false;
      let ends = "";
      for (const line of lines) {
        if (!goes && !line.startsWith("$ ")) continue;
        const command = goes ? line : line.slice(2);
        const here = command.match(/<<'(\w+)'/);
        if (here) ends = here[1];
        kept.push(command);
        if (goes && line === ends) ends = "";
        goes = ends !== "" || command.endsWith("\\");
      }
      text = kept.join("\n");
    }
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  const box = document.createElement("div");
  box.className = "example";
  pre.replaceWith(box);
  box.append(pre, button);
}
