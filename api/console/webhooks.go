package console

// webhookPage is the path that leads to a webhook's page, "" to the list of them.
func webhookPage(name string) string {
	if name == "" {
		return Prefix + "webhooks"
	}
	return Prefix + "webhooks/" + name
}
