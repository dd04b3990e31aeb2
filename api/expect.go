package api

import "bytes"

// plainQuestion is how nearly every request for resolve begins.
const plainQuestion = "GET " + resolvePath + "?domain="

// expect looks whether the message whose head has come in is a plain question for resolve, before the library parses
// it: the answer can be fetched from main memory meanwhile. What is more than one domain, spelled as it is, is no host
// name, so that it is left to the handler.
func (c *conn) expect(head []byte) {
	c.hot.expected = false
	if c.resolver == nil || len(head) < len(plainQuestion) || string(head[:len(plainQuestion)]) != plainQuestion {
		return
	}
	value := head[len(plainQuestion):]
	if end := bytes.IndexByte(value, ' '); end > 0 {
		c.hot.expected = c.resolver.Expect(&c.hot.question, value[:end])
	}
}
