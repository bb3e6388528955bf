package upstream

import (
	"context"
	"net/http"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/pkg/schema"
)

// static is a credential stored by the operator.
type static struct {
	server schema.ServerID
	header string
	prefix string
	value  source
}

// source is the origin of a secret. It is safe for concurrent use.
type source interface {
	// get returns the secret. If now is set, it is read again, whatever its age.
	get(ctx context.Context, now bool) (string, error)
	// changes reports whether reading the secret again may return another one.
	changes() bool
}

func newStatic(server schema.ServerID, a *config.Auth) *static {
	s := &static{server: server, header: http.CanonicalHeaderKey(a.Header), value: newSecret(a.Value)}
	if a.Value.Vault != nil {
		s.value = newVaultSecret(a.Value.Vault)
	}
	if a.Scheme != "" {
		s.prefix = a.Scheme + " "
	}
	return s
}

// Authorize sets the header.
func (s *static) Authorize(ctx context.Context, h http.Header) error {
	return s.set(ctx, h, false)
}

func (s *static) set(ctx context.Context, h http.Header, now bool) error {
	text, err := s.value.get(ctx, now)
	if err == nil {
		text, err = header(text)
	}
	if err != nil {
		return launch.Failed("The credential of server %q cannot be used: %w. The call did not start.", s.server, err)
	}
	h[s.header] = []string{s.prefix + text}
	return nil
}

// CloseIdleConnections closes idle connections to Vault, if there are any.
func (s *static) CloseIdleConnections() {
	if v, ok := s.value.(*vaultSecret); ok {
		v.http.CloseIdleConnections()
	}
}

// Refused reads the file or Vault again. A changed secret is worth another try.
func (s *static) Refused(ctx context.Context, r launch.Refusal) (bool, error) {
	if r.Status != http.StatusUnauthorized || !s.value.changes() {
		return false, nil
	}
	h := make(http.Header, 1)
	if err := s.set(ctx, h, true); err != nil {
		return false, err
	}
	return h.Get(s.header) != r.Sent.Get(s.header), nil
}
