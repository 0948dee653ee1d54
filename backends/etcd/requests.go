package etcd

import pb "go.etcd.io/etcd/api/v3/etcdserverpb"

// hasRevision compares the revision of a key's last change; 0 means that there
// is no key.
func hasRevision(key []byte, revision int64) *pb.Compare {
	return &pb.Compare{
		Key: key, Target: pb.Compare_MOD, Result: pb.Compare_EQUAL,
		TargetUnion: &pb.Compare_ModRevision{ModRevision: revision},
	}
}

func exists(key []byte) *pb.Compare {
	return &pb.Compare{
		Key: key, Target: pb.Compare_CREATE, Result: pb.Compare_GREATER,
		TargetUnion: &pb.Compare_CreateRevision{CreateRevision: 0},
	}
}

// put writes a key, and binds it to a lease; 0 unbinds it from any.
func put(key, value []byte, lease int64) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{
		RequestPut: &pb.PutRequest{Key: key, Value: value, Lease: lease},
	}}
}

func get(key []byte) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{
		RequestRange: &pb.RangeRequest{Key: key},
	}}
}
