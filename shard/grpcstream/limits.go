package grpcstream

// Limits bound what one client can cost. Over a limit the client's stream ends with an error that names the limit;
// nobody else notices.
type Limits struct {
	// RequestBytes is the largest request; 0 means 4 MiB.
	RequestBytes int
	// ReceivedInAll is the size of all requests of more than 128 KiB that are received at the same time; 0 means 64
	// MiB. A larger one is received alone. The others wait with their clients.
	ReceivedInAll int
	// NodeBytes is the largest node; 0 means 512 KiB. Envoy's list of extensions alone has some 60 KiB.
	NodeBytes int
	// Streams is the number of streams of this server; 0 means 50,000.
	Streams int
	// StreamsPerCaller is the number of streams of one caller, an identity or an address; 0 is no limit.
	StreamsPerCaller int
	// Connections is the number of connections with streams; 0 is no limit.
	Connections int
	// StreamsPerConnection is the number of streams of one connection; 0 means 100. More wait on the client's side.
	StreamsPerConnection int
	// Subscriptions is the number of names that one stream may subscribe to over all types, and name in one request; 0
	// means 200,000. That of a Delta stream in all is the Session's to count.
	Subscriptions int
	// SubscriptionBytes is the size of the names that one stream may subscribe to over all types, and name in one
	// request; 0 means 16 MiB.
	SubscriptionBytes int
	// HeldBytes is what may wait for one stream: responses that the client has not taken from us; 0 means 256 MiB. Most
	// of it is shared with other streams.
	HeldBytes int
	// HeldInAll is what may wait for all streams together before those whose clients do not read are cut off without
	// having their time; 0 is no limit. What is shared counts once for each stream.
	HeldInAll int
}

// withDefaults returns l with its zeros filled in.
func (l Limits) withDefaults() Limits {
	fill := func(v *int, def int) {
		if *v == 0 {
			*v = def
		}
	}
	fill(&l.RequestBytes, 4<<20)
	fill(&l.ReceivedInAll, 64<<20)
	fill(&l.NodeBytes, 512<<10)
	fill(&l.Streams, 50_000)
	fill(&l.StreamsPerConnection, 100)
	fill(&l.Subscriptions, 200_000)
	fill(&l.SubscriptionBytes, 16<<20)
	fill(&l.HeldBytes, 256<<20)
	return l
}

func (l *Limits) subscriptions(n int) error {
	return exceeded(ReasonSubscription, "resource names", n, l.Subscriptions)
}

func (l *Limits) subscriptionBytes(n int) error {
	return exceeded(ReasonSubscription, "bytes of resource names", n, l.SubscriptionBytes)
}

func (l *Limits) node(n int) error { return exceeded(ReasonNode, "bytes of the node", n, l.NodeBytes) }

func (l *Limits) held(n int) error {
	return exceeded(ReasonHeld, "bytes waiting for this stream", n, l.HeldBytes)
}

func (l *Limits) heldInAll(n int) error {
	return exceeded(ReasonShed, "bytes waiting for all streams, and this client does not read", n, l.HeldInAll)
}

func (l *Limits) streams(n int) error { return exceeded(ReasonStreams, "streams", n, l.Streams) }

func (l *Limits) connections(n int) error {
	return exceeded(ReasonConnections, "connections", n, l.Connections)
}
