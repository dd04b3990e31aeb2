// Command oidc-provider is the example server of zitadel/oidc: a provider of OpenID Connect that others have written, for
// the tests of sign-in. It prints a line of JSON with its issuer and the certificate that it is known by, and ends with
// its standard input.
//
// Clients are "web" with the secret "secret", and "native" without one. Its user is test-user@127.0.0.1, password
// verysecure, with the address test-user@zitadel.ch. Groups are in userinfo, not in the ID token.
package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"flag"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

func main() {
	redirects := flag.String("redirects", "", "redirect URIs of the clients, with commas")
	groups := flag.String("groups", "ops", "groups of the user, with commas")
	secure := flag.Bool("tls", false, "https, with a certificate of its own")
	flag.Parse()

	server := httptest.NewUnstartedServer(nil)
	issuer := "http://" + server.Listener.Addr().String()
	if *secure {
		issuer = "https://" + server.Listener.Addr().String()
	}
	uris := strings.Split(*redirects, ",")
	storage.RegisterClients(storage.WebClient("web", "secret", uris...), storage.NativeClient("native", uris...))
	users := grouped{storage.NewStorage(storage.NewUserStore(issuer)), strings.Split(*groups, ",")}
	server.Config.Handler = exampleop.SetupServer(issuer, users, slog.New(slog.NewTextHandler(os.Stderr, nil)), false)
	printed := map[string]string{"issuer": issuer}
	if *secure {
		server.StartTLS()
		printed["ca"] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	} else {
		server.Start()
	}
	defer server.Close()
	if err := json.NewEncoder(os.Stdout).Encode(printed); err != nil {
		panic(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// grouped is the example's storage, with groups for everybody.
type grouped struct {
	*storage.Storage
	groups []string
}

// SetUserinfoFromToken is for the userinfo endpoint.
func (g grouped) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, id, subject, origin string) error {
	info.AppendClaims("groups", g.groups)
	return g.Storage.SetUserinfoFromToken(ctx, info, id, subject, origin)
}

var _ op.Storage = grouped{}
