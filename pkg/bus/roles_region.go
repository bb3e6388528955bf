package bus

// RegionRole is what another region may do here, over a leaf node: send calls to
// workers, run those of front doors, and what belongs to that. What is stored stays in
// the region where it was stored: were it to cross, the streams of both would take it.
func RegionRole() Role {
	crosses := []string{
		subjectCall + "*", subjectServe + "*", subjectReply + "*.*", subjectControl + "*", subjectWorker + "*", subjectRouter + "*",
		subjectHello, subjectCancel, subjectWant + "*", subjectUpdated + "*",
	}
	return Role{Name: "region", Publish: crosses, Subscribe: crosses}
}
