package edits

import (
	"errors"
	"fmt"
	"slices"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// WebhooksFile is the file of the first webhook. Every other webhook goes to the first file, by path, that declares one.
const WebhooksFile = "webhooks.hcl"

// A webhookTarget is the block of a webhook.
type webhookTarget struct {
	edit *catalog.WebhookEdit
	want []catalog.Webhook // the webhooks of the file after the edit
}

func (h *webhookTarget) find(w *attempt) (path string, err error) {
	path, exists := w.FileOf(judge.ClaimOf("webhook", h.edit.Name))
	declared := w.Facts.Webhooks()
	switch {
	case h.edit.Create == nil && !exists:
		return "", catalog.NotFound("webhook")
	case h.edit.Create == nil:
		return path, nil
	case exists:
		return "", WebhookTaken(h.edit.Name)
	case len(declared) >= catalog.MaxWebhooks:
		return "", &catalog.Error{Code: catalog.CodeConflict,
			Message: fmt.Sprintf("there are %d webhooks, which is the most that there may be: remove one first", len(declared))}
	}
	var holders []catalog.ListHolder
	for i := range declared {
		holders = append(holders, catalog.ListHolder{Kind: catalog.KindWebhook, Name: declared[i].Name})
	}
	return w.firstOf(holders, WebhooksFile), nil
}

func (h *webhookTarget) read(w *attempt) error {
	return w.readOrCreate(h.edit.Create != nil && w.path == WebhooksFile)
}

func (h *webhookTarget) change(w *attempt) ([]byte, error) {
	w.update.permit = h.edit.Permit
	src, list := w.was.Bytes, slices.Clone(w.was.Declared.Webhooks)
	at := slices.IndexFunc(list, func(x catalog.Webhook) bool { return x.Name == h.edit.Name })
	switch {
	case h.edit.Create != nil && at >= 0:
		return nil, WebhookTaken(h.edit.Name)
	case h.edit.Create != nil:
		want := h.edit.Create.Clone()
		if err := h.protectSecrets(w, new(catalog.Webhook), &want); err != nil {
			return nil, err
		}
		h.want = append(list, want)
		return hcledit.AddWebhook(src, &want)
	case at < 0:
		return nil, &catalog.Error{Code: catalog.CodeFileChanged, Message: "the webhook is no longer in " + w.path +
			", where it was; try again when the files have been reloaded"}
	case h.edit.Change == nil:
		h.want = slices.Delete(list, at, at+1)
		return hcledit.RemoveWebhook(src, h.edit.Name)
	}
	was, want := list[at], list[at].Clone()
	if err := h.edit.Change(&want); err != nil {
		return nil, err
	}
	if err := h.protectSecrets(w, &was, &want); err != nil {
		return nil, err
	}
	list[at], h.want = want, list
	content, err := hcledit.ChangeWebhook(src, &was, &want)
	if errors.Is(err, hcledit.ErrVerify) {
		return nil, h.isExpression(w, "events",
			"a list of the webhook has comments that this change would lose: make it there")
	}
	return content, err
}

// protectSecrets turns the new secrets of a webhook, which a change passes in clear text, into their form in the file. One
// that is saved again unchanged keeps its form. A person's expression goes only if the edit says so.
func (h *webhookTarget) protectSecrets(w *attempt, was, want *catalog.Webhook) error {
	for i := range want.Secrets {
		s := &want.Secrets[i]
		if slices.Contains(was.Secrets, *s) {
			continue
		}
		if s.Source != catalog.SecretPlain {
			return fmt.Errorf("save a secret given by %v: impossible, the API gives clear text only", *s)
		}
		if len(want.Secrets) == 1 && len(was.Secrets) > 0 && w.says(was.Secrets[0], want.SecretContext(), s.Ref) {
			want.Secrets = was.Secrets
			return nil
		}
		sealed, err := w.sealed(want.SecretContext(), s.Ref)
		if err != nil {
			return err
		}
		*s = sealed
	}
	for _, s := range was.Secrets {
		if !h.edit.Seals && written(s) && !slices.Contains(want.Secrets, s) {
			return h.isExpression(w, "secret", fmt.Sprintf("secret is given by %v: another one cannot be saved over it; "+
				"rotate it, or change it there", s))
		}
	}
	return nil
}

func (h *webhookTarget) isExpression(w *attempt, field, why string) error {
	line := w.decoded.Position(catalog.Ref{Kind: catalog.KindWebhook, Name: h.edit.Name}).Line
	err := &catalog.Error{Code: catalog.CodeExpression, Message: fmt.Sprintf("%s:%d: %s", w.path, line, why)}
	err.Problems.Addf(field, "is an expression in the file")
	return err
}

func (h *webhookTarget) prove(w *attempt, result *judge.Candidate) error {
	want := *w.was.Declared
	if want.Webhooks = h.want; len(want.Webhooks) == 0 {
		want.Webhooks = nil
	}
	return w.proveDeclares(result, &want)
}

// WebhookTaken is the CONFLICT with a webhook that exists.
func WebhookTaken(name string) error {
	e := &catalog.Error{Code: catalog.CodeConflict, Message: fmt.Sprintf("there is a webhook %q already", name)}
	e.Problems.Addf("name", "is taken by another webhook: change that one, or choose another name")
	return e
}
