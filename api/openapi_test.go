package api

import (
	"slices"
	"strings"
	"testing"

	"fingerpost/resolver/catalog"
)

// documented lists the calls of openapi.yaml, as "METHOD path security". The file is indented by two blanks per level,
// so no parser is needed.
func documented() (calls []string) {
	var path, method string
	inPaths := false
	for line := range strings.Lines(string(openAPI)) {
		line = strings.TrimRight(line, "\n")
		depth := len(line) - len(strings.TrimLeft(line, " "))
		word, isKey := strings.CutSuffix(strings.TrimSpace(line), ":")
		switch {
		case depth == 0 && line != "":
			inPaths = line == "paths:"
		case !inPaths:
		case depth == 2 && isKey:
			path = word
		case depth == 4 && isKey && slices.Contains([]string{"get", "put", "post", "delete", "patch"}, word):
			method = strings.ToUpper(word)
		case depth == 6 && strings.HasPrefix(line, "      security: "):
			calls = append(calls, method+" "+path+" "+strings.TrimPrefix(line, "      security: "))
		}
	}
	slices.Sort(calls)
	return calls
}

// The description and the route table have the same calls, with the same permissions.
func TestOpenAPIMatchesRoutes(t *testing.T) {
	words := map[catalog.Permission][]string{catalog.MayRead: {"read"}, catalog.MayWrite: {"write"}, catalog.MayMail: {"mail"},
		resolvePermissions: {"resolve", "read"}, catalog.MayWrite | catalog.MayMail: {"write", "mail"}}
	var routed []string
	s, _ := hotServer(t)
	for _, rt := range s.routes() {
		var entries []string
		for _, word := range words[rt.Allow] {
			if rt.service == Mail {
				entries = append(entries, "{serviceToken: ["+word+"], serviceName: []}")
			} else {
				entries = append(entries, "{platformKey: ["+word+"]}")
			}
		}
		if rt.Path == "/api/auth/me" {
			entries = append(entries, "{bearerToken: []}")
		}
		if rt.Admit != nil {
			entries = append(entries, "{inboundPassword: []}", "{inboundToken: []}")
		}
		routed = append(routed, rt.Method+" "+rt.Path+" ["+strings.Join(entries, ", ")+"]")
	}
	slices.Sort(routed)
	described := documented()
	for _, call := range routed {
		if !slices.Contains(described, call) {
			t.Errorf("openapi.yaml lacks %s", call)
		}
	}
	for _, call := range described {
		if !slices.Contains(routed, call) {
			t.Errorf("openapi.yaml describes %s, which is no route", call)
		}
	}
}

// TestOpenAPIHasEveryField: the schema of each request body has every field that the tables of package catalog let a
// request set, but for the fields that a path or another call sets.
func TestOpenAPIHasEveryField(t *testing.T) {
	_, schemas, _ := strings.Cut(string(openAPI), "\n  schemas:\n")
	for schema, kind := range map[string]catalog.Kind{"ProjectCreate": catalog.KindProject, "ProjectUpdate": catalog.KindProject,
		"DomainCreate": catalog.KindDomain, "DomainUpdate": catalog.KindDomain, "ServiceSettingsUpdate": catalog.KindServiceSettings,
		"AuthSettingsUpdate": catalog.KindAuthSettings, "SmtpConfigSave": catalog.KindSMTPConfig, "TemplateSave": catalog.KindTemplate} {
		_, text, found := strings.Cut(schemas, "\n    "+schema+":\n")
		if !found {
			t.Errorf("openapi.yaml has no schema %s", schema)
			continue
		}
		for line := range strings.Lines(text) {
			if len(line) > 5 && line[4] != ' ' && line[4] != '\n' { // the next schema
				text, _, _ = strings.Cut(text, line)
				break
			}
		}
		for _, name := range catalog.RequestNames(catalog.NewFields(kind)) {
			if schema == "ProjectCreate" && name == "status" {
				continue // a new project is a draft
			}
			if !strings.Contains(text, "\n        "+name+":") {
				t.Errorf("the schema %s of openapi.yaml lacks %s", schema, name)
			}
		}
	}
}
