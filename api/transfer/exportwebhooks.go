package transfer

import (
	"context"
	"fmt"
	"slices"

	"fingerpost/api/client"
	"fingerpost/configsrc/hcledit"
	"fingerpost/resolver/catalog"
)

// A webhookJob is the work for one webhook.
type webhookJob struct {
	change Change
	want   *catalog.Webhook // nil: it is removed
	secret string           // opened, of a new one
}

// planWebhooks determines what to do for webhooks. A server that does not tell them gets none.
func (e *Export) planWebhooks(ctx context.Context) error {
	have, told, err := e.remote.DeclaredWebhooks(ctx)
	if err != nil || !told {
		e.webhooksUntold = !told
		return err
	}
	changes, _ := compareRest(&catalog.Declared{Webhooks: have}, &catalog.Declared{Webhooks: e.want.Webhooks}, view{})
	for _, c := range changes {
		j := &webhookJob{change: c}
		if at := slices.IndexFunc(e.want.Webhooks, func(w catalog.Webhook) bool { return w.Name == c.Name }); at >= 0 {
			j.want = &e.want.Webhooks[at]
		} else if !e.options.Remove {
			e.out.OnlyOnServer = append(e.out.OnlyOnServer, c)
			continue
		}
		e.webhooks = append(e.webhooks, j)
	}
	return nil
}

// OpenWebhookSecrets opens the newest secret of each new webhook, by open: without it the server would make another one.
// A secret that cannot be opened is a problem.
func (e *Export) OpenWebhookSecrets(open func(w *catalog.Webhook) (string, error)) {
	for _, j := range e.webhooks {
		if j.change.Action != Added {
			continue
		}
		var err error
		if j.secret, err = open(j.want); err != nil {
			e.out.Problems = append(e.out.Problems,
				fmt.Sprintf("the secret of webhook %s cannot be opened: %v", hcledit.Quote(j.want.Name), err))
			continue
		}
		e.remote.Hide(j.secret)
	}
}

// sendWebhooks makes the changes of webhooks that remove, or the others. It returns the actions.
func (e *Export) sendWebhooks(ctx context.Context, removals bool) []Action {
	r := sending{Export: e, ctx: ctx}
	for _, j := range e.webhooks {
		if (j.want == nil) != removals {
			continue
		}
		r.do(j.change, func() error {
			switch j.change.Action {
			case Removed:
				return e.remote.DeleteWebhook(ctx, j.change.Name)
			case Added:
				_, err := e.remote.CreateWebhook(ctx, client.WebhookOf(j.want), j.secret)
				return err
			}
			return e.remote.UpdateWebhook(ctx, client.WebhookOf(j.want))
		})
	}
	return r.actions
}
