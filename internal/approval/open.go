package approval

import (
	"context"
	"log/slog"

	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/pkg/bus"
)

// Room is a desk with what it works on, for one process.
type Room struct {
	Desk   *Desk
	Ledger *ledger.Ledger
	tokens confirm.Store
}

// OpenRoom opens the ledger and the token store on the connection, which stays
// the caller's; ctx bounds that. redis says where tokens are kept, nil: in
// JetStream.
func OpenRoom(ctx context.Context, conn *bus.Conn, redis *confirm.RedisOptions, log *slog.Logger) (*Room, error) {
	book, err := ledger.Open(ctx, conn, ledger.Options{Log: log})
	if err != nil {
		return nil, err
	}
	r := &Room{Ledger: book}
	if redis != nil {
		r.tokens, err = confirm.OpenRedis(ctx, *redis)
	} else {
		r.tokens, err = confirm.OpenStream(ctx, conn, nil)
	}
	if err != nil {
		book.Close()
		return nil, err
	}
	r.Desk = New(Options{Ledger: book, Tokens: r.tokens, Log: log})
	return r, nil
}

// Close closes the ledger and the token store.
func (r *Room) Close() {
	r.tokens.Close()
	r.Ledger.Close()
}
