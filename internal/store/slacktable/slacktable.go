// Package slacktable stores the approver's Slack state: which Slack account is which principal, the codes
// that connect accounts, which message shows which approval, and the accepted requests. Rows are changed
// by compare-and-set; the packages that open a table define the contents of its rows.
//
// The tables are of the platform: only the approver reads them. A Slack account is looked up before
// its person is known, and its row contains the person's tenant. A message contains no data of an
// approval but its id.
package slacktable

import (
	"context"
	"time"

	"github.com/callyard/callyard/pkg/bus"
)

const (
	// messagesKept is longer than the retention of an approval in the ledger after its last change.
	messagesKept = 31 * 24 * time.Hour
	// onceKept is longer than the validity of a signed request, with clocks that are ahead or behind.
	onceKept  = 15 * time.Minute
	codesKept = 15 * time.Minute
)

var (
	people   = bus.TableSpec{Bucket: bus.BucketSlackPeople, What: "people in Slack"}
	codes    = bus.TableSpec{Bucket: bus.BucketSlackCodes, What: "codes that connect people to Slack", Keep: codesKept}
	messages = bus.TableSpec{Bucket: bus.BucketSlackMessages, What: "messages in Slack", Keep: messagesKept}
	once     = bus.TableSpec{Bucket: bus.BucketSlackOnce, What: "accepted Slack requests", Keep: onceKept}
)

// Specs returns the specs of all tables, for [bus.Provision].
func Specs() []bus.TableSpec { return []bus.TableSpec{people, codes, messages, once} }

// OpenPeople opens the table of Slack accounts and their principals, whose rows do not expire. key returns the
// key of a row; see [bus.OpenTable].
func OpenPeople[T any](ctx context.Context, c *bus.Conn, key func(*T) string) (*bus.Table[T], error) {
	return bus.OpenTable(ctx, c, people, key, nil)
}

// OpenCodes opens the table of codes with which a Slack user proves who they are. Rows expire after 15
// minutes.
func OpenCodes[T any](ctx context.Context, c *bus.Conn, key func(*T) string) (*bus.Table[T], error) {
	return bus.OpenTable(ctx, c, codes, key, nil)
}

// OpenMessages opens the table of Slack messages that show approvals.
func OpenMessages[T any](ctx context.Context, c *bus.Conn, key func(*T) string) (*bus.Table[T], error) {
	return bus.OpenTable(ctx, c, messages, key, nil)
}

// OpenOnce opens the table of accepted Slack requests. Each is remembered for 15 minutes.
func OpenOnce(ctx context.Context, c *bus.Conn) (*bus.Claims, error) {
	return bus.OpenOnce(ctx, c, once)
}
