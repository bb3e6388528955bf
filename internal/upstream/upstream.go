package upstream

import (
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/pkg/schema"
)

// New returns the authorizer for requests to the server at address, or nil if a is nil. With mode
// user it is only for the list of tools. It reads no file and sends nothing before the first
// request.
func New(server schema.ServerID, address string, a *config.Auth) launch.Authorizer {
	switch {
	case a == nil, a.Mode == config.AuthUser && a.Value.IsZero():
		return nil
	case a.Mode == config.AuthService:
		return newService(server, address, a)
	}
	return newStatic(server, a)
}
