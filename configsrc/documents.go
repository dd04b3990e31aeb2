package configsrc

import "embed"

// Documents are those of this room.
//
//go:embed README.md webhooks.md tokens.md login.md atomicfile/README.md verify/README.md gitrepo/README.md cluster/README.md
var Documents embed.FS
