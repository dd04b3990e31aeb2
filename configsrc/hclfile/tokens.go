package hclfile

// Reading a file takes about 500 bytes of memory per token. A file of 1 MiB with 450 projects has 200,000 tokens; one
// of brackets or line ends only has a million, and took 590 MB.
const (
	maxTokens = 400_000
	// maxTokenStarts bounds what tokenStarts counts, so that the worst files are refused without lexing them. It is higher
	// than maxTokens because words and signs in texts count, too: the HTML of mails has one for every two bytes.
	maxTokenStarts = 700_000
)

// guardTokenStarts refuses a file that must not even be lexed.
func (s *Source) guardTokenStarts() (Diagnostic, bool) {
	at, over := tokenStarts(s.Src, maxTokenStarts)
	if !over {
		return Diagnostic{}, false
	}
	s.broken, s.hostile = true, true // for the snippet
	return s.diagnostic(Error, s.rangeAt(at, at+1), "the file has more than 700,000 words, signs and line ends up to here",
		"1 MiB of ordinary configuration has a third of that. Split the file: any number of files is read"), true
}

// tokenStarts reports whether a text could have more than limit tokens, and where it exceeds the limit. It counts every
// byte with which a token could begin in any state of the lexer: each sign, each line end, and the first byte of each
// word. So the lexer never finds more tokens than tokenStarts counts.
func tokenStarts(src []byte, limit int) (at int, over bool) {
	if len(src) <= limit {
		return 0, false
	}
	n := 0
	var before byte
	for i, c := range src {
		switch {
		case isLetter(c):
			if !isLetter(before) { // behind a digit, too: 1a is a number and a name
				n++
			}
		case isDigit(c):
			if !isLetter(before) && !isDigit(before) {
				n++
			}
		case c == ' ':
			if before == '"' { // a text of blanks may begin here
				n++
			}
		case c >= 0x80 && c < 0xc0: // inside a character
		default:
			n++
		}
		if n > limit {
			return i, true
		}
		before = c
	}
	return 0, false
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
