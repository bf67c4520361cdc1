# Writes gaussian_weights.json: linear mixed models with prior weights, and Satterthwaite's degrees of freedom.
# Run in this folder:  Rscript gaussian_weights.R   (lme4 1.1.31, lmerTest 3.1.3, emmeans 1.8.4)
suppressMessages({library(lmerTest); library(emmeans); library(jsonlite)})
set.seed(9)
tight <- lmerControl(optimizer = "bobyqa", optCtrl = list(rhoend = 1e-10, maxfun = 1e5))
sleep <- transform(lme4::sleepstudy, id = paste0("s", Subject), half = ifelse(Days < 5, "early", "late"))
sleep <- transform(sleep[c("id", "half", "Days", "Reaction")], w = 1 + 3 * (Days %% 3))
chicks <- transform(as.data.frame(ChickWeight), time = Time / 10, chick = paste0("c", Chick), diet = paste0("d", Diet))
chicks <- transform(chicks[c("chick", "diet", "time", "weight")], w = round(40 * runif(nrow(chicks), 0.1, 2), 3))
describe <- function(name, formula, spec, data, reml) {
  fit <- lmer(as.formula(formula), data, REML = reml, weights = w, control = tight)
  coefficients <- as.data.frame(coef(summary(fit)))
  means <- as.data.frame(emmeans(fit, spec, lmer.df = "satterthwaite", data = data))
  list(name = name, formula = formula, spec = spec, reml = reml, data = data, loglik = as.numeric(logLik(fit)),
       estimate = coefficients$Estimate, se = coefficients[["Std. Error"]], df = coefficients$df,
       sd = as.data.frame(VarCorr(fit))$sdcor, means = means[c("emmean", "SE", "df")])
}
write_json(list(
  describe("sleep", "Reaction ~ half + Days + (Days||id)", "half", sleep, FALSE),
  describe("sleep_reml", "Reaction ~ half + Days + (Days||id)", "half", sleep, TRUE),
  describe("chicks", "weight ~ diet + time + (0 + time|chick)", "diet", chicks, TRUE),
  describe("intercepts", "Reaction ~ half + Days + (1|id)", "half", sleep, TRUE)),
  "gaussian_weights.json", digits = NA, auto_unbox = TRUE, dataframe = "columns")
