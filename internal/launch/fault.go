package launch

import "github.com/callyard/callyard/pkg/schema"

// Unavailable is an error of what a server is started with: nothing has started, and it
// may go better later.
func Unavailable(format string, args ...any) *schema.Error {
	return schema.Errorf(schema.KindUnavailable, format, args...).RetryableAfter(0)
}

// Failed is an error of the server, or of what it is started with, that stays until
// somebody repairs it.
func Failed(format string, args ...any) *schema.Error {
	return schema.Errorf(schema.KindServerFailed, format, args...)
}
