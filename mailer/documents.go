package mailer

import "embed"

// Documents has the README of this room.
//
//go:embed README.md
var Documents embed.FS
