package console

import (
	"cmp"
	"net/http"
	"strings"

	"fingerpost/configsrc"
	"fingerpost/resolver/catalog"
)

// A problemsView is what is wrong with the files.
type problemsView struct {
	Status configsrc.Status
	Whole  bool // the key covers every project; nobody else sees files of others
	Store  string
	Git    *GitState // nil: none
	May    bool      // confirm
	Error  string
}

func (c *Console) problemsOf(s *session) problemsView {
	v := problemsView{Whole: s.Key().Everything && c.o.Config != nil}
	if v.Whole {
		v.Status = c.o.Config.Status()
		v.May = s.Key().mayEverywhere(catalog.MayWrite)
		if c.o.GitState != nil {
			git := c.o.GitState()
			v.Git = &git
		}
		if c.o.Figures != nil {
			v.Store = c.o.Figures().Degraded
		}
	}
	return v
}

func (c *Console) problems(w http.ResponseWriter, r *http.Request, s *session) error {
	return c.render(w, r, s, http.StatusOK, "problems", "Problems", c.problemsOf(s))
}

// confirmWord is what a person types to let a held reload through.
const confirmWord = "remove"

// confirm applies the reload that the brake holds back.
func (c *Console) confirm(w http.ResponseWriter, r *http.Request, s *session) error {
	v := c.problemsOf(s)
	switch {
	case !v.Whole || !v.May:
		return s.Key().refuse("Letting the reload through", catalog.MayWrite, true)
	case v.Status.Held == nil:
		v.Error = "Nothing is held back any more."
	case strings.TrimSpace(r.PostFormValue("word")) != confirmWord:
		v.Error = "Type the word " + confirmWord + " to confirm. Nothing was done."
	default:
		c.o.Logger.Info("held reload confirmed in the console", "key", s.Key().ID, "actor", s.actor)
		if err := c.o.Config.Confirm(r.Context(), catalog.Author{Door: catalog.DoorConsole, Subject: s.Key().Subject,
			Actor: cmp.Or(s.actor, s.Key().Name), Key: s.Key().Name}); err != nil {
			v.Error = err.Error()
			break
		}
		s.say("The reload was applied.")
		return seeOther(w, r, Prefix+"problems")
	}
	return c.render(w, r, s, http.StatusConflict, "problems", "Problems", v)
}
