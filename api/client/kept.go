package client

import (
	"context"
	"strconv"
)

// A KeptMail is a mail that the server has kept instead of sending it.
type KeptMail struct {
	FromEmail, ToEmail, Subject string
	BodyHTML, BodyText          string
	Source                      string // the message as a mail server would have got it
}

// KeptMail reads a mail that the server has kept. One that it has not, or whose text it no longer has, is an *Error with
// status 404.
func (c *Client) KeptMail(ctx context.Context, project, logID int64) (m KeptMail, err error) {
	_, err = c.mail.view(ctx, mailPath(project, "/logs/"+strconv.FormatInt(logID, 10)+"/message"), &m)
	return m, err
}
