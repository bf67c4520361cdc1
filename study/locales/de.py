"""German."""

from __future__ import annotations

TEXTS: dict[str, str] = {
    "title": "Was sagt die KI?",
    "consent": (
        "Sie sind eingeladen, an einer Studie darüber teilzunehmen, wie Menschen die Antworten einer künstlichen "
        "Intelligenz (KI) vorhersagen, die benennt, was auf einem Bild zu sehen ist.\n\n"
        "Sie sehen ein Bild nach dem anderen. Zu jedem wählen Sie, welchen von zwei Namen die KI ihm gegeben hat.\n\n"
        "Die Teilnahme ist freiwillig. Sie können jederzeit ohne Angabe von Gründen aufhören und Ihre Antworten mit "
        "einem persönlichen Code zurückziehen. Wir speichern Ihre Antworten und wie lange sie dauern; nichts darin "
        "weist auf Sie hin. Die pseudonymen Antworten können an andere Forschende weitergegeben werden."
    ),
    "agree_age": "Ich bin mindestens 18 Jahre alt.",
    "agree": "Ich habe dies gelesen und bin mit der Teilnahme einverstanden.",
    "contact_researcher": "Verantwortlich für diese Studie: {name}.",
    "contact_board": "Ethikvotum: {name}.",
    "contact_email": "Fragen oder Bedenken? Schreiben Sie an",
    "instructions": (
        "Eine KI hat eine Reihe von Bildern betrachtet und jedem einen Namen gegeben. Manchmal ist ihre Antwort "
        "richtig, manchmal falsch.\n\n"
        "Ihre Aufgabe ist, die KI vorherzusagen: Wählen Sie zu jedem Bild den Namen, den die KI ihm gegeben hat, "
        "auch wenn Sie selbst es anders nennen würden."
    ),
    "check": "Zuerst ein paar Fragen, damit wir sehen, ob wir es gut erklärt haben.",
    "check_again": (
        "Nicht jede Antwort war richtig. Bitte lesen Sie dies noch einmal; danach können Sie erneut antworten."
    ),
    "example": "So sieht eine Frage aus.",
    "example_map": (
        "Neben dem Bild sehen Sie es noch einmal, in Grau mit einer Karte darüber. Orange Stellen sprachen für die "
        "Antwort der KI, blaue dagegen; graue machten keinen Unterschied."
    ),
    "example_examples": "Über jedem Namen sehen Sie andere Bilder, die die KI so nennt.",
    "example_concepts": (
        "Über jedem Namen sehen Sie, was die KI dazu bringt, ihn zu nennen: wie viel öfter (Balken nach rechts) oder "
        "seltener (nach links) sie ihn nennt, wenn ein Bild zeigt, was dort steht, in Prozentpunkten."
    ),
    "example_gauge": (
        "Neben dem Bild sehen Sie, wie sicher die KI sich ihrer Antwort ist: Bei 100 % ist sie sich ganz sicher, weit "
        "darunter schwankt sie zwischen mehreren Namen. Sie kann sich sicher sein und irren."
    ),
    "example_both": "Jedes dieser Bilder trägt seine eigene Karte.",
    "practice": "Zuerst ein paar Bilder zur Übung. Nach jedem erfahren Sie, was die KI gesagt hat.",
    "main": "Jetzt beginnt die eigentliche Studie. Von nun an erfahren Sie nicht mehr, was die KI gesagt hat.",
    "question": "Wie nennt die KI dieses Bild?",
    "catch": "Um zu zeigen, dass Sie mitlesen, wählen Sie hier bitte „{name}“.",
    "map_legend": "orange: für die Antwort, blau: dagegen",
    "gauge_legend": "wie sicher die KI sich ihrer Antwort ist",
    "examples_legend": "Die KI nennt diese „{name}“",
    "concepts_legend": "Was sie „{name}“ sagen lässt",
    "feedback": "Die KI nannte dieses Bild „{name}“.",
    "confidence": "Wie sicher sind Sie?",
    "questionnaire": "Ein paar letzte Fragen.",
    "debrief": (
        "Vielen Dank für Ihre Teilnahme.\n\n"
        "Wir untersuchen, ob Erklärungen helfen, die Antworten einer KI vorherzusagen. In dieser Studie sahen die "
        "Teilnehmenden die Bilder allein, mit Karten dessen, worauf die KI sich stützte, mit Beispielen dessen, was "
        "sie so nennt, oder mit beidem. Einige Fragen sagten Ihnen, was zu wählen ist: Sie zeigen, wer mitliest."
    ),
    "debrief_placebo": (
        "Manche sahen Karten oder Beispiele, die nichts über die Antwort der KI sagen: eine Karte mit zufällig "
        "verteilten Farben, die Karte eines Netzes, das nichts gelernt hat, oder Beispiele von etwas anderem. Das "
        "konnten wir vorher nicht sagen: Nur so zeigt die Studie, was wahre Erklärungen beitragen."
    ),
    "declined": (
        "Sie möchten nicht teilnehmen. Nur diese Entscheidung wurde gespeichert. Sie können die Seite schließen."
    ),
    "full": "Vielen Dank für Ihr Interesse. Alle Plätze dieser Studie sind vergeben; Teilnehmen geht jetzt nicht.",
    "paused": (
        "Diese Studie macht gerade eine Pause und nimmt niemanden neu auf. Bitte öffnen Sie denselben Link später noch "
        "einmal. Wenn Sie vermittelt wurden und nicht warten können, geben Sie Ihren Platz dort bitte zurück. Über Sie "
        "wurde nichts gespeichert."
    ),
    "closed": (
        "Vielen Dank für Ihr Interesse. Diese Studie ist beendet und nimmt niemanden mehr auf. Über Sie wurde nichts "
        "gespeichert."
    ),
    "screened": (
        "Vielen Dank für Ihr Interesse. Die Fragen zur Aufgabe wurden nicht so beantwortet, wie wir es für diese "
        "Studie brauchen; sie endet deshalb hier. Das ist kein Urteil über Sie und hat keine Nachteile."
    ),
    "expired": (
        "Die Zeit für diese Studie ist abgelaufen; sie endet deshalb hier. Ihre bisherigen Antworten sind gespeichert. "
        "Der geleistete Teil wird bezahlt; bitte verwenden Sie den Code unten oder schreiben Sie uns."
    ),
    "withdrawn": "Ihre Antworten wurden gelöscht. Vielen Dank für Ihre Zeit; der Rückzug hat keine Nachteile für Sie.",
    "withdrawn_id": (
        "Wenn Sie über den Link eines Vermittlers gekommen sind, bleibt die Kennung darin bis zu {days} Tage nach "
        "Ihrer Zustimmung gespeichert, getrennt von allen Antworten, damit Sie bezahlt werden können. Danach wird sie "
        "gelöscht."
    ),
    "refused_unknown": (
        "Unter dieser Adresse gibt es keine Studie. Bitte prüfen Sie den Link oder öffnen Sie ihn dort noch einmal, wo "
        "Sie ihn gefunden haben."
    ),
    "refused_link": "Diesem Link fehlt etwas. Bitte öffnen Sie die Studie dort noch einmal, wo Sie sie gefunden haben.",
    "refused_stale": (
        "Diese Seite gilt nicht mehr: Die Studie wurde anderswo noch einmal geöffnet. Machen Sie dort weiter, oder "
        "öffnen Sie den Link, den Sie erhalten haben, noch einmal."
    ),
    "refused_elsewhere": (
        "Diese Studie ist in einem anderen Tab geöffnet. Machen Sie dort weiter, oder laden Sie diese Seite neu, um "
        "hier weiterzumachen."
    ),
    "refused_moved": (
        "Die Studie ist inzwischen an anderer Stelle. Bitte laden Sie die Seite neu, um dort weiterzumachen."
    ),
    "refused_code": "Keine Teilnahme hat diesen Code. Bitte prüfen Sie ihn.",
    "refused_known": (
        "Dieser Link wird schon benutzt. Bitte machen Sie in dem Browser weiter, in dem Sie begonnen haben, oder geben "
        "Sie Ihren persönlichen Code ein. Wenn Sie noch nicht zugestimmt haben, öffnen Sie den Link in zehn Minuten "
        "noch einmal."
    ),
    "refused_invited": (
        "An dieser Studie können nur Eingeladene teilnehmen. Bitte öffnen Sie den Link aus Ihrer Einladung."
    ),
    "refused_busy": "Aus Ihrem Netzwerk kommen gerade viele Anfragen. Bitte warten Sie eine Minute.",
    "refused_preview": (
        "Vorab ansehen können diese Studie nur die Forschenden: Melden Sie sich zuerst auf deren Seiten an."
    ),
    "no_script": "Diese Studie braucht JavaScript. Bitte schalten Sie es ein und laden Sie die Seite neu.",
    "ui.preview": "Vorschau: keine Daten",
    "ui.wait": "Einen Moment…",
    "ui.thanks": "Vielen Dank",
    "ui.again": "Noch einmal versuchen",
    "ui.moment": "Einen Moment bitte",
    "ui.cannot": "Diese Seite kann nicht fortfahren",
    "ui.wrong": "Etwas ist schiefgegangen. Bitte laden Sie die Seite neu.",
    "ui.decline": "Ich möchte nicht teilnehmen",
    "ui.accept": "Teilnehmen",
    "ui.task": "Ihre Aufgabe",
    "ui.continue": "Weiter",
    "ui.check": "Haben wir es gut erklärt?",
    "ui.send": "Absenden",
    "ui.look": "Was Sie sehen werden",
    "ui.keys": (
        "{left} wählt den linken Namen, {right} den rechten. Sie können auch klicken oder tippen. Es hat keine Eile."
    ),
    "ui.touch": "Tippen Sie auf den Namen, den Sie wählen. Es hat keine Eile.",
    "ui.mini_picture": "Das Bild, das die KI betrachtet hat",
    "ui.mini_map": "Daneben, was man über ihre Antwort weiß",
    "ui.mini_samples": "Über jedem Namen, was für die KI zu ihm gehört",
    "ui.mini_names": "Die zwei Namen: Wählen Sie den der KI",
    "ui.practice": "Übung",
    "ui.main": "Die Studie beginnt",
    "ui.back": "Willkommen zurück",
    "ui.resume": "Sie machen weiter mit Bild {number} von {total}.",
    "ui.break": "Zeit für eine Pause",
    "ui.break_text": "{number} von {total} sind geschafft. Ruhen Sie die Augen aus, so lange Sie mögen.",
    "ui.begin": "Beginnen",
    "ui.loading": "Die Bilder werden geladen… {number} von {total}",
    "ui.loaded": "Alle Bilder sind bereit.",
    "ui.no_pictures": "Einige Bilder konnten nicht geladen werden. Bitte prüfen Sie Ihre Verbindung.",
    "ui.progress": "{number} von {total}",
    "ui.picture": "Bild {number}",
    "ui.picture_map": "Bild {number} mit Karte",
    "ui.picture_left": "Bild {number}, links {sample}",
    "ui.picture_right": "Bild {number}, rechts {sample}",
    "ui.next": "Weiter",
    "ui.slow": "Nehmen Sie sich die nötige Zeit und wählen Sie dann einen Namen.",
    "ui.sure_low": "geraten",
    "ui.sure_high": "sicher",
    "ui.saved": "Gespeichert",
    "ui.saving": "Wird gespeichert…",
    "ui.offline": "Keine Verbindung: Wird so bald wie möglich gesendet",
    "ui.resending": "Es geht dort weiter, wo Sie waren",
    "ui.questionnaire": "Fast geschafft",
    "ui.required": "Bitte beantworten Sie jede Frage.",
    "ui.done": "Fertig",
    "ui.code": "Ihr Abschlusscode",
    "ui.copy": "Kopieren",
    "ui.copied": "Kopiert",
    "ui.all_saved": "Alle Ihre Antworten sind gespeichert. Sie können die Seite schließen.",
    "ui.redirect": "Zurück zum Ausgangspunkt",
    "ui.receipt": "Ihre Quittung: Der Server hat, was Sie geantwortet haben",
    "ui.late": (
        "Ihre Antworten sind beim Server, doch er ist nicht erreichbar, um die Studie abzuschließen. Diese Seite "
        "versucht es weiter; bitte lassen Sie sie offen. Wenn das so bleibt, senden Sie den Forschenden diese "
        "Quittung: {receipt}"
    ),
    "ui.withdraw": "Zurückziehen",
    "ui.withdraw_title": "Von dieser Studie zurücktreten",
    "ui.withdraw_text": (
        "Wenn Sie fortfahren, werden alle Ihre Antworten endgültig gelöscht. Das hat keine Nachteile für Sie, und was "
        "Ihnen für Ihre Zeit zusteht, bleibt bestehen. Sie brauchen Ihren persönlichen Code."
    ),
    "ui.withdraw_code": "Ihr persönlicher Code für einen späteren Rückzug, unter {link}",
    "ui.withdraw_label": "Persönlicher Code",
    "ui.withdraw_yes": "Meine Antworten löschen",
    "ui.withdraw_no": "Zurück",
    "ui.elsewhere": "Die Studie ist anderswo geöffnet",
    "ui.elsewhere_text": "Sie haben sie in einem anderen Tab oder Fenster offen. Möchten Sie lieber hier weitermachen?",
    "ui.here": "Hier weitermachen",
    "ui.gate": "Dieses Gerät passt nicht zu dieser Studie",
    "ui.gate_small": (
        "Das Fenster ist zu klein: Nötig sind {width} × {height} Punkte. Vergrößern Sie es und laden Sie die Seite neu."
    ),
    "ui.gate_phone": "Bitte öffnen Sie diesen Link auf einem Computer mit Tastatur.",
    "ui.gate_storage": (
        "Dieser Browser lässt die Seite nichts speichern, Antworten könnten verloren gehen. Verlassen Sie das private "
        "Surfen oder nehmen Sie einen anderen Browser und laden Sie neu."
    ),
    "ui.gate_return": (
        "Wenn das nicht möglich ist, geben Sie Ihren Platz bitte zurück. Nichts wurde gespeichert, und es hat keine "
        "Nachteile."
    ),
}
