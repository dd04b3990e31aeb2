// Package say says for people what the API says in codes.
//
// What it promises.
//
//   - A value, a time, a length of time and a browser in words: "yes", "3 hours ago", "Firefox on Linux". What a browser
//     is follows from its User-Agent header, which says what the browser likes: it helps a person to recognise a session,
//     and proves nothing.
//   - An entry of the audit trail in a sentence: "Ada Lovelace renamed Acme to Acme Shop". SentenceOf returns it in parts,
//     so that a page can make links of projects and domains. Every action that catalog.AuditObjects and
//     catalog.AuditOthers list has a sentence of its own, one of a newer node a general one. Fields are called by their
//     labels in package catalog. Of secrets it says that they were changed. A sentence has a value of at most 48
//     characters, and three fields by name.
//   - A unified diff as lines with their kinds, and a changed line with its changed words.
//   - What has become of a mail, and for every code of a failure that mailer/README.md lists, a reason and a remedy.
//
// What it needs. Entries as package client reads them.
//
// What it does not do. It knows no page and no HTML: the page escapes, and makes invisible characters visible, which are
// as people gave them to names.
package say
