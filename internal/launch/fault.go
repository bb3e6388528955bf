package launch

import "github.com/callyard/callyard/pkg/schema"

// Unavailable returns a temporary error of the environment that starts a server. Nothing was started.
func Unavailable(format string, args ...any) *schema.Error {
	return schema.Errorf(schema.KindUnavailable, format, args...).RetryableAfter(0)
}

// Failed returns an error of the server, or of the environment that starts it, that lasts until an
// operator repairs it.
func Failed(format string, args ...any) *schema.Error {
	return schema.Errorf(schema.KindServerFailed, format, args...)
}
