package bus

import (
	"context"
	"strings"

	"github.com/nats-io/nats.go"
)

// Scan calls f with every stored message of a log, of all journals, in the order in which
// they were stored, on one goroutine. Messages that come meanwhile may be among them.
func (j *Journals) Scan(ctx context.Context, log JournalLog, f func(id string, m JournalMessage)) error {
	_, stream, subject := j.log("*", log)
	subject = strings.Replace(subject, token("*"), "*", 1)
	end := subject[strings.LastIndexByte(subject, '.'):]
	w, err := j.c.watch(ctx, "a log of journals", stream, subject, func(m *nats.Msg, sequence uint64, live bool) {
		if !live {
			f(strings.TrimSuffix(strings.TrimPrefix(m.Subject, subjectJournal), end), JournalMessage{sequence, m.Data})
		}
	}, beginAll, false)
	if err != nil {
		return err
	}
	w.Close()
	return nil
}

// ScanKeys calls f with the hash and the entry of every idempotency key, as Scan does.
func (j *Journals) ScanKeys(ctx context.Context, f func(hash string, data []byte)) error {
	w, err := j.c.watch(ctx, "the idempotency keys", streamKeys, subjectKey+"*", func(m *nats.Msg, _ uint64, live bool) {
		if !live {
			f(strings.TrimPrefix(m.Subject, subjectKey), m.Data)
		}
	}, beginAll, false)
	if err != nil {
		return err
	}
	w.Close()
	return nil
}

// StreamOf is the name of the stream of a log.
func (j *Journals) StreamOf(log JournalLog) string {
	_, name, _ := j.log("", log)
	return name
}

// ManifestsStream is the stream of manifests.
const ManifestsStream = streamJournals
