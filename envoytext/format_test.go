package envoytext

import "testing"

// TestFormatIsEnvoys: what upstream Envoy 1.40 takes and refuses as the value of a header that it adds.
func TestFormatIsEnvoys(t *testing.T) {
	for _, good := range []string{
		"", "x", "%%", "100%%", "%REQ(x)%", "%REQ(x):10%", "%REQ(x?y)%", "%REQ(:AUTHORITY)%", "%START_TIME%",
		"%START_TIME(%Y)%", "%START_TIME(%%)%",
		"%START_TIME(a)b)%", "%DYNAMIC_METADATA(a:b)%", `%DYNAMIC_METADATA(["a","b"])%`, "%FILTER_STATE(x)%",
		"%FILTER_STATE(a:FIELD:x)%",
		"%DOWNSTREAM_REMOTE_ADDRESS%", "%HOSTNAME%", "a%REQ(x)%b%%c", "%METADATA(ROUTE:a:b)%", "%GRPC_STATUS(NUMBER)%",
		"%PATH(WQ)%",
		"%COMMON_DURATION(DS_RX_BEG:DS_RX_END:ms)%", "%PER_REQUEST_STATE(x)%", "%RESPONSE_CODE_DETAILS%",
		"%QUERY_PARAM(a):5%",
	} {
		if err := Format(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"%", "100%", "50% off", "%FOO%", "%req(x)%", "%REQ%", "%REQ()%", "%REQ(x", "%REQ(x?y?z)%", "%REQ(a b)%",
		"%REQ(x):-1%", "%%%", "x%y%z",
		"%DOWNSTREAM_REMOTE_ADDRESS:3%", "%DOWNSTREAM_REMOTE_ADDRESS(x)%", "%START_TIME:5%", "%GRPC_STATUS(x)%",
		"%PATH(x)%", "%METADATA(X:a)%",
		"%FILTER_STATE%", "%FILTER_STATE(a:b)%", "%COMMON_DURATION(a:b:c)%", "%CLIENT_IP%",
	} {
		if Format(bad) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
