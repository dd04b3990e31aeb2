package console

import (
	"net/http"
	"slices"
	"time"

	"fingerpost/resolver/catalog"
)

// A sessionRow is a line of the list of sessions.
type sessionRow struct {
	ID, Key, Login, Actor, Peer, Browser string
	Began, Seen                          time.Time
	Own                                  bool
	Person                               int // sessions of the same person that can be ended, if there are several
}

// A sessionsView lists sessions.
type sessionsView struct {
	Rows   []sessionRow
	All    bool // of all keys
	Others int  // of the session's key
}

// listSessions shows the sessions of the same key; to a key that may write on every project, those of all keys.
func (c *Console) listSessions(w http.ResponseWriter, r *http.Request, s *session) error {
	v, key := sessionsView{All: c.sees(s) == ""}, s.Key().ID
	for _, o := range c.sessions.list(c.sees(s)) {
		o.mu.Lock()
		row := sessionRow{o.id, o.key.Name, o.login(), o.actor, o.place.String(), o.browser, o.began, o.seen, o == s, 0}
		if o.edge {
			row.Seen = time.Time{}
		}
		v.Rows = append(v.Rows, row)
		if o != s && o.key.ID == key {
			v.Others++
		}
		o.mu.Unlock()
	}
	of := map[string]int{}
	for _, row := range v.Rows {
		if row.Actor != "" && !row.Own {
			of[row.Actor]++
		}
	}
	for i := range v.Rows {
		if n := of[v.Rows[i].Actor]; n > 1 {
			v.Rows[i].Person = n
		}
	}
	return c.render(w, r, s, http.StatusOK, "sessions", "Sessions", v)
}

// sees returns the id of the key whose sessions a session may see, "" for all.
func (c *Console) sees(s *session) string {
	if k := s.Key(); !k.mayEverywhere(catalog.MayWrite) {
		return k.ID
	}
	return ""
}

// endOthers ends the other sessions of the same key.
func (c *Console) endOthers(w http.ResponseWriter, r *http.Request, s *session) error {
	for _, o := range c.sessions.list(s.Key().ID) {
		if o != s {
			c.sessions.end(o)
		}
	}
	if s.person != nil {
		s.say("All your other sessions have ended.")
	} else {
		s.say("All other sessions with your key have ended.")
	}
	return seeOther(w, r, Prefix+"sessions")
}

// endPerson ends the sessions of the person of one of them, with whatever key, but not the one that asks. Persons are what
// they said at sign-in.
func (c *Console) endPerson(w http.ResponseWriter, r *http.Request, s *session) error {
	list, ended := c.sessions.list(c.sees(s)), 0
	i := slices.IndexFunc(list, func(o *session) bool { return o.id == r.PostFormValue("session") && o.actor != "" })
	for _, o := range list {
		if i >= 0 && o != s && o.actor == list[i].actor {
			c.sessions.end(o)
			ended++
		}
	}
	if i >= 0 {
		s.say("Sessions of " + visible(list[i].actor) + " that have ended: " + itoa(ended) + ".")
	}
	return seeOther(w, r, Prefix+"sessions")
}

func (c *Console) endSession(w http.ResponseWriter, r *http.Request, s *session) error {
	for _, o := range c.sessions.list(c.sees(s)) {
		if o.id == r.PathValue("id") {
			c.sessions.end(o)
			s.say("The session has ended.")
		}
	}
	return seeOther(w, r, Prefix+"sessions")
}
