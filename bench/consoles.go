package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
)

// consoles are open live pages of the web console, which take what they are sent.
type consoles []*http.Response

// watch signs in and opens n live pages.
func watch(s *server, key string, n int) (c consoles, err error) {
	defer func() {
		if err != nil {
			c.close()
			err = fmt.Errorf("open live page %d of %d: %w", len(c)+1, n, err)
		}
	}()
	for range n {
		jar, err := cookiejar.New(nil)
		if err != nil {
			return c, err
		}
		client := &http.Client{Jar: jar}
		res, err := client.PostForm( //nolint:bodyclose // closed below; the second one is another
			"http://"+s.addr+"/console/sign-in", url.Values{"key": {key}})
		if err != nil {
			return c, err
		}
		res.Body.Close()
		//nolint:bodyclose // close closes it
		if res, err = client.Get("http://" + s.addr + "/console/live/stream"); err != nil {
			return c, err
		}
		c = append(c, res)
		if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
			return c, errors.New(res.Status)
		}
		go func() { _, _ = io.Copy(io.Discard, res.Body) }()
	}
	return c, nil
}

func (c consoles) close() {
	for _, res := range c {
		res.Body.Close()
	}
}
