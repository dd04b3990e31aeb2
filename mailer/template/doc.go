// Package template checks and fills in mail templates.
//
// A Template has a subject, an HTML and a text part with placeholders such as {{userName}} and conditions on whether a
// variable is there: {{#if userName}}…{{else}}…{{/if}}. Validate finds what is neither, placeholders in the HTML where
// escaping does not keep a value plain text, such as in a script, and conditions around parts of elements; it is the
// check for templates of files and of the API. Each problem has its exact place in the text.
//
// Render promises that each value stands where its placeholder stood: HTML-escaped in the HTML, as it is in subject and
// text, and never looked at for further placeholders. Bytes outside of placeholders stay as they are, conditional
// comments of Outlook included.
//
// Render is strict. A missing variable, a control character, a line break in the subject, or a link that is no http,
// https, mailto or tel address is a problem on that variable, and all problems are reported at once. Preview shows what
// would be sent, with the placeholders of missing variables left in.
//
// The labels of the project are variables, too (WithProject); one that is a colour may stand in a style attribute. A
// template has its texts in several languages; Localize chooses one.
//
// A template without a text part gets one out of its HTML (PlainText): tags dropped, links as "text (url)", lists with
// marks. golang.org/x/net/html reads the HTML.
//
// A Cache keeps parsed templates by their texts. The package sends nothing and knows no projects.
package template
