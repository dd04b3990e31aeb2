package main

import (
	"embed"
	"io/fs"
	"log/slog"

	"fingerpost/api"
	"fingerpost/api/console"
	"fingerpost/api/docs"
	"fingerpost/configsrc"
	"fingerpost/mailer"
)

//go:embed README.md CHANGELOG.md guides/*.md
var documents embed.FS

// newDocuments makes what serve has below /docs/.
func newDocuments(version string, log *slog.Logger) *docs.Handler {
	return docs.New(docs.Options{
		Rooms: map[string]fs.FS{"api": api.Documents, "configsrc": configsrc.Documents, "mailer": mailer.Documents,
			"cmd/fingerpost": documents},
		Assets: console.Assets(), Version: version, Logger: log,
	})
}
