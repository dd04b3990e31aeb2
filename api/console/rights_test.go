package console

import (
	"math/rand/v2"
	"slices"
	"testing"

	"fingerpost/resolver/catalog"
)

// pairs is the Reach of random grants on the projects 1 and 2, which have the slugs "1" and "2".
type pairs []catalog.Grant

func (p pairs) on(slug string) (allow catalog.Permission) {
	for _, g := range p {
		if g.Projects == nil || slices.Contains(g.Projects, slug) {
			allow |= g.Allow
		}
	}
	return allow
}

func (p pairs) At(project int64) catalog.Permission { return p.on(itoa(int(project))) }
func (p pairs) Everywhere() catalog.Permission      { return p.on("") }

func (p pairs) AllOf(slugs []string) catalog.Permission {
	all := p.on("") | p.on("1") | p.on("2")
	for _, slug := range slugs {
		all &= p.on(slug)
	}
	return all
}

// What is offered on a project to a person is what is offered to keys with the person's pairs, all of them on the same
// projects: the key for every project, and the one for that project alone.
func TestRightsOfPersons(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		c := &Console{o: Options{Git: random.IntN(2) == 0}}
		var p pairs
		for range 1 + random.IntN(3) {
			g := catalog.Grant{Allow: catalog.Permission(1 + random.IntN(63))}
			if n := random.IntN(3); n > 0 {
				g.Projects = []string{itoa(n)}
			}
			p = append(p, g)
		}
		person := Key{Allow: p.on("") | p.on("1") | p.on("2"), Everything: p.Everywhere()&catalog.MayRead != 0, Reach: p}
		for project := int64(1); project <= 2; project++ {
			got := c.rightsOf(person, project)
			all := c.rightsOf(Key{Allow: p.Everywhere(), Everything: true}, project)
			one := c.rightsOf(Key{Allow: p.At(project)}, project)
			want := rights{Save: all.Save || one.Save, Propose: all.Propose || one.Propose, Edit: all.Edit || one.Edit,
				Create: all.Create, Mail: all.Mail || one.Mail, Keys: all.Keys, Webhooks: all.Webhooks}
			if got != want {
				t.Fatalf("%v on %d: offered %+v, keys are offered %+v", p, project, got, want)
			}
		}
		both := c.rightsWith(person, p.AllOf([]string{"1", "2"}))
		if both.Save && (p.At(1)&p.At(2)&catalog.MayWrite == 0) {
			t.Fatalf("%v: saving both is offered", p)
		}
	}
}
