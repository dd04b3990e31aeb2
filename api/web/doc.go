// Package web is what every handler of the API needs and no handler is: it reads a request's body into a Form, its query
// into a Query and a Paging, compares ETags, and knows the HTTP status and the details of an error.
//
// Everything from a client is read strictly: a body is one JSON object in UTF-8 without repeated names, a parameter is
// given once, and every problem is named at once, with its field. What is echoed to a client is bounded in number and
// length.
//
// The package knows no route, no key and no resolver but the form in which it takes a query. Its errors are
// *catalog.Error, and StatusOf has the HTTP status of each code; the few calls that answer with another one say why.
package web
