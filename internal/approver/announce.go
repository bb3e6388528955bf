package approver

import (
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// announceEvery is how often an approver gives a sign of life, as front doors and workers
// do.
const announceEvery = time.Second

// announce tells the front doors each second that this approver is here and which
// configuration it goes by, until the approver ends. In a process that is a worker as well,
// the worker announces its servers.
func (a *Approver) announce() {
	id := schema.NewID("approver")
	tick := time.NewTicker(announceEvery)
	defer tick.Stop()
	for {
		inForce := slices.DeleteFunc(a.o.InForce(), func(p schema.InForce) bool { return p.Part == schema.PartServers })
		if err := a.o.Conn.AnnounceApprover(id, inForce); err != nil {
			a.o.Log.Debug("announcing the approver failed", "error", err)
		}
		select {
		case <-a.ctx.Done():
			return
		case <-tick.C:
		}
	}
}
