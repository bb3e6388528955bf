// Package slacktable keeps what the approver must remember of Slack: who there is which
// principal, which codes connect somebody, which message shows which approval, and which
// requests were taken. Rows are changed by compare-and-set; what a row means is decided
// by the packages that open a table.
//
// The tables are of the platform: only the approver reads them. An account in Slack is asked
// for before anybody is known, and its row says of which tenant the person is; a message has
// nothing of an approval but its id.
package slacktable

import (
	"context"
	"time"

	"github.com/callyard/callyard/pkg/bus"
)

const (
	// messagesKept is longer than the ledger keeps an approval after its last change.
	messagesKept = 31 * 24 * time.Hour
	// onceKept is longer than a signed request can be valid, both ways.
	onceKept  = 15 * time.Minute
	codesKept = 15 * time.Minute
)

var (
	people   = bus.TableSpec{Bucket: bus.BucketSlackPeople, What: "people in Slack"}
	codes    = bus.TableSpec{Bucket: bus.BucketSlackCodes, What: "codes that connect people to Slack", Keep: codesKept}
	messages = bus.TableSpec{Bucket: bus.BucketSlackMessages, What: "messages in Slack", Keep: messagesKept}
	once     = bus.TableSpec{Bucket: bus.BucketSlackOnce, What: "accepted Slack requests", Keep: onceKept}
)

// Specs are all tables, for [bus.Provision].
func Specs() []bus.TableSpec { return []bus.TableSpec{people, codes, messages, once} }

// OpenPeople opens the table of Slack accounts and their principals. It is kept for ever.
// key names a row; see [bus.OpenTable].
func OpenPeople[T any](ctx context.Context, c *bus.Conn, key func(*T) string) (*bus.Table[T], error) {
	return bus.OpenTable(ctx, c, people, key, nil)
}

// OpenCodes opens the table of codes with which somebody in Slack says who they are; rows
// end by themselves after a quarter of an hour.
func OpenCodes[T any](ctx context.Context, c *bus.Conn, key func(*T) string) (*bus.Table[T], error) {
	return bus.OpenTable(ctx, c, codes, key, nil)
}

// OpenMessages opens the table of messages in Slack that show approvals.
func OpenMessages[T any](ctx context.Context, c *bus.Conn, key func(*T) string) (*bus.Table[T], error) {
	return bus.OpenTable(ctx, c, messages, key, nil)
}

// OpenOnce opens the accepted Slack requests; each is remembered for a quarter
// of an hour.
func OpenOnce(ctx context.Context, c *bus.Conn) (*bus.Once, error) { return bus.OpenOnce(ctx, c, once) }
