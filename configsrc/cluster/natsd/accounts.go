package natsd

import (
	"bytes"
	"encoding/json"
)

// ownAccount is the authority's account on the built-in server: the bucket is there, and nothing else.
const ownAccount = "fingerpost"

// accountInfo is imported into the account of each edge, and no edge may ask for it: without it, the server would add
// an import of all JetStream requests, and would answer them too, with "JetStream not enabled for account"
// (enableJetStreamInfoServiceImportOnly in its jetstream.go).
const accountInfo = "$JS.API.INFO"

// Grants are what each edge may use of the authority's account, and nothing else.
type Grants struct {
	Services []Service `json:"services"`
	News     string    `json:"news"`  // subject that the authority publishes on
	Inbox    string    `json:"inbox"` // prefix of an edge's reply subjects, before its name
}

// A Service is a subject that is answered.
type Service struct {
	Subject  string `json:"subject"`
	Named    bool   `json:"named,omitempty"`    // it ends in the edge's name
	Response string `json:"response,omitempty"` // "stream" if an answer may have several messages
}

func (s Service) of(edge string) string {
	if s.Named {
		return s.Subject + "." + edge
	}
	return s.Subject
}

// Parts of a configuration of nats-server.
type (
	account struct {
		JetStream string          `json:"jetstream,omitempty"`
		Users     []accountUser   `json:"users"`
		Exports   []accountExport `json:"exports,omitempty"`
		Imports   []accountImport `json:"imports,omitempty"`
	}
	accountUser struct {
		Nkey        string       `json:"nkey"`
		Permissions *permissions `json:"permissions,omitempty"`
	}
	permissions struct {
		Publish   []string `json:"publish"`
		Subscribe []string `json:"subscribe"`
	}
	accountExport struct {
		Service  string `json:"service,omitempty"`
		Response string `json:"response_type,omitempty"`
		Stream   string `json:"stream,omitempty"`
	}
	accountImport struct {
		Service *importedSubject `json:"service,omitempty"`
		Stream  *importedSubject `json:"stream,omitempty"`
	}
	importedSubject struct {
		Account string `json:"account"`
		Subject string `json:"subject"`
	}
)

// accounts is who may do what on the built-in server, in the server's configuration language; package cluster's README has the
// same for an existing one. Each edge has an account of its own, which imports what it needs. Whatever reply subject an edge
// names is one of that account: in the authority's, the server would publish its answer on it with the authority's
// rights, and an answer on the subject of a JetStream request is a request.
func (c *Config) accounts() (string, error) {
	own := account{JetStream: "enabled", Users: []accountUser{{Nkey: c.Authority}},
		Exports: []accountExport{{Service: accountInfo}, {Stream: c.Grants.News}}}
	for _, g := range c.Grants.Services {
		own.Exports = append(own.Exports, accountExport{Service: g.of("*"), Response: g.Response})
	}
	all := map[string]account{ownAccount: own}
	for name, key := range c.Edges {
		var publish []string
		for _, g := range c.Grants.Services {
			publish = append(publish, g.of(name))
		}
		a := account{
			Users:   []accountUser{{key, &permissions{publish, []string{c.Grants.Inbox + name + ".>", c.Grants.News}}}},
			Imports: []accountImport{{Stream: &importedSubject{ownAccount, c.Grants.News}}},
		}
		for _, subject := range append(publish, accountInfo) {
			a.Imports = append(a.Imports, accountImport{Service: &importedSubject{ownAccount, subject}})
		}
		all["edge_"+name] = a
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // which the server's language does not know
	err := e.Encode(map[string]any{"accounts": all})
	return b.String(), err
}
