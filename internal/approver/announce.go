package approver

import (
	"cmp"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// announceEvery is the heartbeat interval of an approver. It equals that of front doors and
// workers.
const announceEvery = time.Second

// announce sends a heartbeat with the approver's configuration to the front doors until the
// approver stops. In a process that is also a worker, the worker announces its servers.
func (a *Approver) announce() {
	id := schema.NewID("approver")
	tick := time.NewTicker(announceEvery)
	defer tick.Stop()
	for {
		inForce := slices.DeleteFunc(a.o.InForce(), func(p schema.InForce) bool { return p.Part == schema.PartServers })
		if err := a.o.Conn.AnnounceApprover(id, inForce, cmp.Or(a.o.Signer, schema.NoSigner)); err != nil {
			a.o.Log.Debug("announcing the approver failed", "error", err)
		}
		select {
		case <-a.ctx.Done():
			return
		case <-tick.C:
		}
	}
}
