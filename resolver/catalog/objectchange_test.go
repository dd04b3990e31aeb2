package catalog_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
)

// full returns declarations that have one of everything.
func full() *catalog.Declared {
	p := catalog.ProjectConfig{Project: catalog.Project{ID: 1, UUID: catalog.DeriveProjectUUID("acme"), Slug: "acme"},
		Service: catalog.NewServiceSettings(), Auth: catalog.NewAuthSettings(), SMTP: new(catalog.SMTPConfig),
		Domains: []catalog.Domain{{Name: "acme.example"}}, Templates: []catalog.Template{{Code: "HELLO"}}}
	service, auth, verification := p.Service, p.Auth, catalog.NewVerification()
	service.Said, auth.Said = ^catalog.FieldSet(0), ^catalog.FieldSet(0)
	return &catalog.Declared{Projects: []catalog.ProjectConfig{p}, Templates: []catalog.Template{{Code: "BYE"}},
		Keys: []catalog.Key{{Name: "ci"}}, Edges: []catalog.Edge{{Name: "fra1"}},
		Webhooks: []catalog.Webhook{{Name: "crm"}}, Logins: []catalog.Login{{Name: "company", Rules: []catalog.LoginRule{{}}}}, Inbounds: []catalog.Inbound{{Name: "ses"}}, Sealing: new(catalog.Sealing),
		Defaults: &catalog.Defaults{Service: &service, Auth: &auth, SMTP: new(catalog.SMTPConfig), Verification: &verification}}
}

// TestChangesSeesEverything: whatever changes in declarations, Changes lists it, and all but identities for the audit
// trail. The permission for a proposal depends on it: a field that Changes does not see may be changed by anybody. It
// finds a new field by itself.
func TestChangesSeesEverything(t *testing.T) {
	t.Parallel()
	unseen := []string{
		"CreatedAt", "UpdatedAt", // the store's
		"ProjectID",                                                   // follows from the block around it
		"Projects.Service.ID", "Projects.Auth.ID", "Projects.SMTP.ID", // follow from the UUID
		"Defaults.Service.ID", "Defaults.Auth.ID", "Defaults.SMTP.ID", // have none
		"Defaults.Service.UUID", "Defaults.Auth.UUID", "Defaults.SMTP.UUID",
	}
	leaves := 0
	d := full()
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		if slices.Contains(unseen, path) || slices.Contains(unseen, path[strings.LastIndex(path, ".")+1:]) {
			return
		}
		switch v.Interface().(type) {
		case time.Time, catalog.Secret, catalog.UUID, []catalog.Label:
		default:
			switch {
			case v.Kind() == reflect.Pointer && !v.IsNil():
				walk(v.Elem(), path)
				return
			case v.Kind() == reflect.Slice && v.Len() > 0:
				walk(v.Index(0), path)
				return
			case v.Kind() == reflect.Struct:
				for i := range v.NumField() {
					if name := v.Type().Field(i).Name; name != "_" {
						walk(v.Field(i), path+"."+name)
					}
				}
				return
			}
		}
		leaves++
		was := reflect.New(v.Type()).Elem()
		was.Set(v)
		change(v)
		there, back := catalog.Changes(full(), d), catalog.Changes(d, full())
		if len(there) == 0 || len(back) == 0 {
			t.Errorf("%s changes, and Changes does not tell", path)
		} else if identity := strings.HasSuffix(path, "ID") || strings.HasSuffix(path, ".Said"); !identity &&
			len(there[0].Fields) == 0 {
			t.Errorf("%s changes, and the audit trail does not tell", path)
		}
		v.Set(was)
	}
	if got := catalog.Changes(full(), d); len(got) != 0 {
		t.Fatalf("without a change: %v", got)
	}
	v := reflect.ValueOf(d).Elem()
	for i := range v.NumField() {
		walk(v.Field(i), v.Type().Field(i).Name)
	}
	if leaves < 70 {
		t.Errorf("only %d fields were tried", leaves)
	}
}

func TestChangesPairs(t *testing.T) {
	t.Parallel()
	was, is := full(), full()
	is.Projects[0].Domains = []catalog.Domain{{Name: "b.example", ID: 2}, {Name: "new.example", ID: 1}, {Name: "x.example", ID: 9}}
	was.Projects[0].Domains = []catalog.Domain{{Name: "a.example", ID: 2}, {Name: "old.example", ID: 1}, {Name: "b.example", ID: 3}}
	is.Projects[0].Project.Slug = "acme-2"
	is.Projects = append(is.Projects, catalog.ProjectConfig{Project: catalog.Project{ID: 2, UUID: catalog.DeriveProjectUUID("b"), Slug: "b"}})
	was.Projects = append(was.Projects, catalog.ProjectConfig{Project: catalog.Project{ID: 3, UUID: catalog.DeriveProjectUUID("c"), Slug: "c"}})
	is.Keys[0].ID, is.Defaults = "abcdef", nil
	var got []string
	for _, c := range catalog.Changes(was, is) {
		o := c.Object()
		name := o.Name
		if c.Was != nil && c.Was.Name != name {
			name = c.Was.Name + "→" + name
		}
		got = append(got, o.Noun()+"."+c.Verb()+" "+name)
	}
	want := []string{"project.update acme→acme-2", "domain.update b.example", "domain.update old.example→new.example",
		"domain.create x.example", "domain.delete a.example",
		"project.create b", "service-settings.update ", "auth-settings.update ",
		"project.delete c", "service-settings.update ", "auth-settings.update ",
		"defaults.update ", "key.rotate ci"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}
