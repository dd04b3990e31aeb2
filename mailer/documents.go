package mailer

import "embed"

// Documents are the READMEs of this room.
//
//go:embed README.md suppression.md inbound.md template/README.md
var Documents embed.FS
