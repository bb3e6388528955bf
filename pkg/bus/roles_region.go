package bus

// RegionRole is the set of permissions of another region over a leaf node: send calls to workers,
// run calls of front doors, and exchange the related messages. Stored messages must not cross
// regions, because the streams of both regions would store them.
func RegionRole() Role {
	crosses := []string{
		subjectCall + "*", subjectServe + "*", subjectReply + "*.*", subjectControl + "*", subjectWorker + "*", subjectRouter + "*",
		subjectHello, subjectCancel, subjectWant + "*", subjectUpdated + "*",
	}
	return Role{Name: "region", Publish: crosses, Subscribe: crosses}
}
