package batch

import "github.com/callyard/callyard/pkg/schema"

// needsIntent reports whether the intent of a call is stored before the call is sent. A call
// that is safe to repeat needs none, because the next owner of the journal may run it again. The
// fault campaign (e2e/chaos) builds a front door with another version of this file, to show that
// it detects calls that run twice.
func needsIntent(c *schema.Call) bool { return !c.Safe }
