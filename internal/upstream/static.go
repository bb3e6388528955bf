package upstream

import (
	"context"
	"net/http"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/pkg/schema"
)

// static is a credential that an operator has stored.
type static struct {
	server schema.ServerID
	header string
	prefix string
	value  *secret
}

func newStatic(server schema.ServerID, a *config.Auth) *static {
	s := &static{server: server, header: http.CanonicalHeaderKey(a.Header), value: newSecret(a.Value)}
	if a.Scheme != "" {
		s.prefix = a.Scheme + " "
	}
	return s
}

// Authorize sets the header.
func (s *static) Authorize(_ context.Context, h http.Header) error {
	return s.set(h, false)
}

func (s *static) set(h http.Header, now bool) error {
	text, err := s.value.read(now)
	if err == nil {
		text, err = header(text)
	}
	if err != nil {
		return launch.Failed("The credential of server %q cannot be used: %w. The call did not start.", s.server, err)
	}
	h[s.header] = []string{s.prefix + text}
	return nil
}

// Refused reads the file again; what it holds now is worth a second try.
func (s *static) Refused(_ context.Context, r launch.Refusal) (bool, error) {
	if r.Status != http.StatusUnauthorized || s.value.file == "" {
		return false, nil
	}
	h := make(http.Header, 1)
	if err := s.set(h, true); err != nil {
		return false, err
	}
	return h.Get(s.header) != r.Sent.Get(s.header), nil
}
