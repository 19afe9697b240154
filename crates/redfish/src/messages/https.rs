//! What is said of HTTPS and its certificate.

use super::Arg::Text;

messages! { HTTPS:
    HTTPS_OFF: "HttpsOff" Failed Daemon [Text("REASON")]
        "HTTPS is off: %1",
        "see what it needs with: palisade explain HttpsOff",
        "HTTPS needs addresses (`https` in the configuration), a state directory, which keeps its \
         certificate, and an account, as nobody could log in without one. The daemon serves its \
         socket all the same, and HTTPS begins as soon as all of it is there.";
    HTTPS_NOT_BOUND: "HttpsNotBound" Failed Daemon [Text("ADDRESS"), Text("PROBLEM")]
        "HTTPS can't listen on %1: %2",
        "use another address, or stop the program that uses this one",
        "The daemon serves its socket, and HTTPS at the other addresses, all the same.";
    ANOTHER_SITE: "AnotherSite" Refused Daemon [Text("ORIGIN")]
        "a page of %1 asked for this",
        "ask with a client of Redfish, or from a page of this service",
        "A browser sends the name and password that it knows with what any page asks for. A change \
         is not taken from a page of another site: `Origin` has to be that of the service, and \
         `Sec-Fetch-Site`, if it is there, `same-origin` or `none`.";
    CERTIFICATE_UNUSABLE: "CertificateUnusable" Usage Daemon [Text("PROBLEM")]
        "the certificate can't be used: %1",
        "give PEM: the server's certificate, those that it depends on, and its private key",
        "A certificate is taken only if the daemon has its private key: with the certificate, from \
         the last request for a signature, or from the certificate that is there. The one that is \
         there stays.";
    CERTIFICATE_EARLY: "CertificateEarly" Failed Daemon [Text("DATE")]
        "the certificate of HTTPS is good from %1 on, which is later than now",
        "set the machine's clock; if it is right, replace the certificate",
        "A machine that has lost the time starts in the past: its certificate is kept, as clients \
         know it. If the clock was wrong when the daemon made the certificate, remove `https.pem` \
         from the state directory and send the daemon SIGHUP: it makes another.";
    CERTIFICATE_ENDS: "CertificateEnds" Failed Daemon [Text("DATE")]
        "the certificate of HTTPS is good until %1, and the daemon does not renew it",
        "replace it: with CertificateService.ReplaceCertificate, or in the files that \
         `certificate` and `key` name, with SIGHUP to the daemon",
        "The certificate is one that a person gave, and its end is less than 30 days away, or \
         has come. Clients that look at dates refuse it from then on.";
    CERTIFICATE_REQUEST: "CertificateRequestFailed" Usage Daemon [Text("PROBLEM")]
        "the request for a signature can't be made: %1",
        "give names of DNS and IP addresses, and texts that X.509 has signs for",
        "A request for a signature (CSR) names the server as its clients do.";
    CERTIFICATE_CONFIGURED: "CertificateConfigured" Refused Daemon []
        "the certificate is that of the configuration",
        "replace the files that `certificate` and `key` name, and send the daemon SIGHUP",
        "A certificate that the configuration names is not changed from the network: the next \
         start would take the files again.";
    CERTIFICATE_NOT_KEPT: "CertificateNotKept" Failed Daemon [Text("PROBLEM")]
        "the certificate can't be kept: %1",
        "check the file system of the state directory",
        "The certificate and its key are a file of the state directory, which can't be read or \
         written.";
    CERTIFICATE_NOT_READ: "CertificateNotRead" Failed Daemon [Text("FILE"), Text("PROBLEM")]
        "%1 can't be read: %2",
        "correct `certificate` and `key` in the configuration",
        "The configuration names a file that is no certificate or key, is not there, or that the \
         daemon may not read.";
}
