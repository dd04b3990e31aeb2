package configsrc

import "embed"

// Documents are the READMEs of this room.
//
//go:embed README.md atomicfile/README.md verify/README.md gitrepo/README.md cluster/README.md
var Documents embed.FS
