package console

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"fingerpost/api/console/form"
	"fingerpost/resolver/catalog"
)

// A boxAnswer is what a text in the look-up box is, where that is something other than a domain.
type boxAnswer struct {
	Page    string           // that shows it; "": the look-up itself does
	Project *catalog.Project // the text is its slug, name, id or uuid
	Mail    *mailRow         // the text is its Message-ID
	Request string           // the text is the id of a request, which made changes
	Webhook string           // the text is its name, or the id of one of its deliveries
	Address *addressView     // the text is a mail address
}

// An addressView is the mail to an address.
type addressView struct {
	Address       string
	Total, Unsent int
	Partly        bool // older mail was not searched
	Rows          []mailRow
	Link          string // to the log
}

// boxEntries is how many of the latest entries of the audit trail are searched for a request.
const boxEntries = 200_000

// boxRows is how many mails to an address are shown.
const boxRows = 6

var (
	requestIDForm = regexp.MustCompile(`^[0-9a-f]{16}-[0-9a-f]{12}$`)
	deliveryForm  = regexp.MustCompile(`^[0-9a-f]{12}\.[mg]?[0-9]+(?:-[0-9]+)?\.([a-z0-9-]+)(?:\.r[0-9]+)?$`)
	addressForm   = regexp.MustCompile(`^[^\s@<>]+@[^\s@<>]+$`)
)

// recognize says what a text is that a person has put into the box, nil if it is none of the kinds that come before a
// domain (api/console/README.md): a Message-ID, an address, an id, a uuid, the id of a request or of a delivery, a slug, or a webhook. All is asked
// of the API with the person's key, so what the key does not reach does not exist.
func (c *Console) recognize(ctx context.Context, s *session, asked string) *boxAnswer {
	api, text := c.api(s), strings.Trim(strings.TrimSpace(asked), "<>")
	if _, in, named := strings.Cut(text, "<"); named && strings.Contains(in, "@") { // Ada <ada@example.com>
		text = in
	}
	if strings.Contains(text, "@") {
		if b := c.messageOf(ctx, s, text); b != nil {
			return b
		}
	}
	if address := strings.TrimPrefix(text, "mailto:"); addressForm.MatchString(address) {
		return c.addressOf(ctx, s, address)
	}
	uuid, noUUID := catalog.ParseUUID(text)
	id, noID := strconv.ParseInt(text, 10, 64)
	if noUUID == nil { // ids follow from uuids, unless a file says another
		id, noID = catalog.DeriveID(catalog.KindProject, uuid), nil
	}
	if noID == nil && id > 0 {
		if p, err := api.ProjectByID(ctx, id); err == nil && (noUUID != nil || p.UUID == uuid) {
			return projectAnswer(&p)
		}
	}
	if requestIDForm.MatchString(text) || noUUID == nil {
		filters := query("requestId", text, "newest", itoa(boxEntries), "limit", "1")
		if page, err := api.AuditPage(ctx, filters); err == nil && len(page.Rows) > 0 {
			return &boxAnswer{Request: text, Page: link(Prefix+"changes", "request", text)}
		}
	}
	if b := c.deliveryNamed(s, text); b != nil {
		return b
	}
	if catalog.CheckSlug(text) == "" {
		if p, err := api.ProjectBySlug(ctx, text); err == nil {
			return projectAnswer(&p)
		}
		if c.webhookNames(ctx, s)[text] {
			return &boxAnswer{Webhook: text, Page: webhookPage(text)}
		}
	}
	return nil
}

func projectAnswer(p *catalog.Project) *boxAnswer {
	return &boxAnswer{Project: p, Page: projectPage(p.ID)}
}

// deliveryNamed returns the kept delivery with an id, which its receiver got as webhook-id.
func (c *Console) deliveryNamed(s *session, text string) *boxAnswer {
	m := deliveryForm.FindStringSubmatch(text)
	if m == nil || c.o.Webhooks == nil || !c.may(s).Webhooks {
		return nil
	}
	if _, err := c.o.Webhooks.Request(m[1], text); err != nil {
		return nil
	}
	return &boxAnswer{Webhook: m[1], Page: deliveryPage(m[1], text)}
}

// named returns the one project that has a text as its name, nil if there is none, or more.
func (c *Console) named(ctx context.Context, s *session, text string) *boxAnswer {
	text = strings.TrimSpace(text)
	page, err := c.api(s).ProjectPage(ctx, query("q", text, "page", "1", "limit", itoa(maxAdds)))
	if err != nil {
		return nil
	}
	var found *catalog.Project
	for i := range page.Rows {
		if p := &page.Rows[i]; strings.EqualFold(p.Name, text) {
			if found != nil {
				return nil
			}
			found = p
		}
	}
	if found == nil {
		return nil
	}
	return projectAnswer(found)
}

// messageOf returns the mail with a Message-ID.
func (c *Console) messageOf(ctx context.Context, s *session, id string) *boxAnswer {
	page, err := c.api(s).Mail(ctx, query("messageId", id, "limit", "1"))
	if err != nil || len(page.Rows) == 0 {
		return nil
	}
	row := c.mailRows(ctx, s, page.Rows)[0]
	return &boxAnswer{Mail: &row, Page: fmt.Sprintf("%smail/%d/%d", Prefix, row.ProjectID, row.ID)}
}

// addressOf counts the mail to an address, and lists the newest. What the domain of the address is, the look-up says.
func (c *Console) addressOf(ctx context.Context, s *session, address string) *boxAnswer {
	v := &addressView{Address: address, Link: link(Prefix+"mail", "to", address)}
	page, err := c.api(s).Mail(ctx, query("toEmail", address, "limit", itoa(boxRows)))
	if err != nil {
		return nil // the key may not read mail, or nobody sends any here
	}
	v.Total, v.Partly, v.Rows = page.Total, page.SearchedTo != "", c.mailRows(ctx, s, page.Rows)
	sent, err := c.api(s).Mail(ctx, query("toEmail", address, "status", string(catalog.MailSent), "limit", "1"))
	if v.Unsent = v.Total - sent.Total; err != nil {
		v.Unsent = 0
	}
	return &boxAnswer{Address: v}
}

// near adds the projects and mails that have the text somewhere, for a text that is nothing.
func (m *missView) near(ctx context.Context, c *Console, s *session, asked string) {
	if asked = strings.TrimSpace(asked); len(asked) < form.MinPiece {
		return
	}
	if page, err := c.api(s).ProjectPage(ctx, query("q", asked, "page", "1", "limit", itoa(maxNear))); err == nil {
		m.Like = page.Rows
	}
	if page, err := c.api(s).Mail(ctx, query("q", asked, "limit", itoa(maxNear))); err == nil {
		m.Mails = c.mailRows(ctx, s, page.Rows)
	}
}

// leads answers with the page of what a text is. A page that looks up while a person types gets no other page, but a
// link to it.
func (b *boxAnswer) leads(w http.ResponseWriter, r *http.Request) bool {
	if b == nil || b.Page == "" || r.Header.Get("HX-Request") != "" {
		return false
	}
	_ = seeOther(w, r, b.Page)
	return true
}
