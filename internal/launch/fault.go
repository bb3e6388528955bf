package launch

import "github.com/callyard/callyard/pkg/schema"

// Unavailable returns a temporary error of the environment that starts a server. Nothing was started.
func Unavailable(format string, args ...any) *schema.Error {
	err := schema.Errorf(schema.KindUnavailable, format, args...)
	err.Retryable = true
	return err
}

// Failed returns an error of the server, or of the environment that starts it, that lasts until an
// operator repairs it.
func Failed(format string, args ...any) *schema.Error {
	return schema.Errorf(schema.KindServerFailed, format, args...)
}
